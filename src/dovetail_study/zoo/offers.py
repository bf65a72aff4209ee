"""Offers: every customer gets at most one offer and some letters, and all share one budget.

    max  sum of responses
    s.t. at most one offer a customer,   letters only with an offer,   sum of costs <= budget
         response_c = f(voucher_c, bundle_c, gift_c, letters_c, age_c, spending_c)

Feasible: no customer gets an offer.
"""

from __future__ import annotations

import numpy as np

import dovetail as dt
from dovetail.core.arrays import FloatArray
from dovetail_study.problems.host import Host
from dovetail_study.zoo.learners import Learner, by_size, network

OFFERS = {"voucher": 5.0, "bundle": 8.0, "gift": 3.0}
"""The cost of each."""
LETTERS, POSTAGE = 3, 0.8


def offers(size: int, seed: int, learner: Learner = network) -> dt.Problem:
    """Customers drawn like those of the data; one predictor for all."""
    rng = np.random.default_rng(seed)
    customers = by_size(size, 5, 25, 200)
    X, response = _history(rng)
    model = learner(X, response, size, seed)
    age, spending = rng.uniform(20.0, 75.0, customers), rng.uniform(0.0, 10.0, customers)

    host = Host("max")
    inputs, answers, costs = [], [], []
    for c in range(customers):
        offered = [host.binary(f"{offer}[{c}]") for offer in OFFERS]
        letters = host.variable(f"letters[{c}]", 0, LETTERS, integer=True)
        host.row(f"one offer[{c}]", [(1.0, j) for j in offered], upper=1.0)
        host.row(f"letters[{c}]", [(1.0, letters), *((-float(LETTERS), j) for j in offered)], upper=0.0)
        costs += [*zip(OFFERS.values(), offered, strict=True), (POSTAGE, letters)]
        facts = [host.known(f"age[{c}]", age[c]), host.known(f"spending[{c}]", spending[c])]
        inputs.append([*offered, letters, *facts])
        answers.append([host.output(f"response[{c}]", cost=1.0)])
    host.row("budget", costs, upper=4.0 * customers)
    problem = host.problem()
    problem.add_predictor(model, inputs, answers, name="response")
    return problem


def _history(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Vouchers please the young, bundles those who spend; letters help, fewer each time."""
    n = 400
    kind, letters = rng.integers(0, 4, n), rng.integers(0, LETTERS + 1, n)
    age, spending = rng.uniform(20.0, 75.0, n), rng.uniform(0.0, 10.0, n)
    offered = np.eye(4)[kind][:, 1:]
    letters = np.where(kind == 0, 0, letters)
    worth = np.column_stack([8.0 - 0.1 * (age - 20.0), 2.0 + spending, np.full(n, 4.0)])
    response = 1.0 + 0.3 * spending + (offered * worth).sum(axis=1) * (1.0 + 0.35 * np.sqrt(letters))
    return np.column_stack([offered, letters, age, spending]), response + rng.normal(0.0, 0.4, n)
