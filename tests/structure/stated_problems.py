"""Problems that are stated as templates, small enough to be written out as well."""

import numpy as np
import torch
from torch import nn

import dovetail as dt


def net(d: int, seed: int = 0) -> nn.Module:
    """A small float64 network."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(d, 4), nn.ReLU(), nn.Linear(4, 1)).double()


def treatments(n: int = 60, seed: int = 0, *, most: float = np.inf) -> dt.Problem:
    """x = w + up - down, a class, budgets per column; a host column that has one value is in one of them."""
    w = np.random.default_rng(seed).standard_normal((n, 3))
    problem = dt.Problem(dt.Mip([0.5], lower=1.0, upper=1.0, sense="max", names=["grant"], offset=2.0))
    made = problem.add_template(
        n,
        {
            "good": dt.Family(upper=1.0, cost=1.0, integer=True),
            "x": dt.Family(lower=-most, upper=most, width=3),
            "up": dt.Family(width=3),
            "down": dt.Family(width=3),
        },
        rows=[dt.FamilyRow({"x": 1.0, "up": -1.0, "down": 1.0}, w, w, name="treatment")],
        coupling=[
            dt.FamilyRow({"up": 1.0, "grant": -1.0}, upper=2.0, name="budget_up"),
            dt.FamilyRow({"down": 1.0}, upper=np.array([2.0, 3.0, 4.0]), name="budget_down"),
        ],
    )
    problem.add_predictor(net(3), made["x"], made["good"], output_type="classification", threshold=0.0)
    return problem


def campaign(n: int = 60, seed: int = 1) -> dt.Problem:
    """Data, an integer, a price for each block, a cost for each, data in a coupling row, a choice of two."""
    rng = np.random.default_rng(seed)
    price, worth = rng.uniform(5.0, 20.0, n), rng.uniform(1.0, 3.0, n)
    problem = dt.Problem(sense="max")
    made = problem.add_template(
        n,
        {
            "age": dt.Family(fixed=rng.uniform(0.2, 0.8, n)),
            "letters": dt.Family(upper=2.0, integer=True),
            "discount": dt.Family(upper=rng.uniform(0.1, 0.3, n)),
            "spend": dt.Family(upper=9.0),
            "way": dt.Family(upper=1.0, width=2),
            "buys": dt.Family(lower=-np.inf, cost=worth),
        },
        rows=[
            dt.FamilyRow({"spend": 1.0, "discount": -price}, lower=0.0, upper=0.0, name="paid"),
            dt.FamilyRow({"way": 1.0, "letters": -0.5}, upper=0.0, summed=True, name="ways"),
        ],
        coupling=[
            dt.FamilyRow({"spend": 1.0, "age": 2.0}, upper=150.0, name="budget"),
            dt.FamilyRow({"letters": 1.0}, lower=10.0, upper=40.0, name="print"),
        ],
    )
    problem.add_predictor(net(4), made["discount", "age", "letters", "spend"], made["buys"])
    return problem


def floors(n: int = 60, seed: int = 2) -> dt.Problem:
    """Two networks of a block read columns of their own; a private row over both outputs ties them."""
    rng = np.random.default_rng(seed)
    problem = dt.Problem(sense="min")
    made = problem.add_template(
        n,
        {
            "a": dt.Family(lower=-1.0, upper=1.0, width=2),
            "b": dt.Family(lower=-1.0, upper=1.0, width=2, cost=rng.uniform(0.1, 1.0, (n, 2))),
            "taste": dt.Family(lower=-np.inf),
            "yield": dt.Family(lower=-np.inf, cost=-1.0),
        },
        rows=[dt.FamilyRow({"taste": 1.0, "yield": 1.0}, lower=-0.5, name="floor")],
        coupling=[dt.FamilyRow({"a": 1.0, "b": 1.0}, upper=5.0, name="stock")],
    )
    problem.add_predictor(net(2, 3), made["a"], made["taste"])
    problem.add_predictor(net(2, 4), made["b"], made["yield"])
    return problem
