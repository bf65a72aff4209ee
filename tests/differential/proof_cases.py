"""Random small problems of all kinds for proofs: networks, hosts and domains of every sort we can bound."""

from __future__ import annotations

import numpy as np
import torch

from . import proof_modules
from .proof_case import Case, Slack, Tied, state
from .proof_stages import STAGED, add_stages

DOMAINS = ("box", "box", "simplex", "ball", "priced ball", "integer", "mixed", "coupled")
EVERY = 4
"""Of so many rounds through the domains the last is one of stages."""
RELU_SHARE = 0.6
"""Of the networks: the ones most proofs are about."""


def make(seed: int) -> Case:
    """Case number `seed`."""
    rng = np.random.default_rng((seed, 15))
    staged = seed // len(DOMAINS) % EVERY == EVERY - 1
    domain = STAGED[seed % len(STAGED)] if staged else DOMAINS[seed % len(DOMAINS)]
    case = Case(seed, domain, sense=str(rng.choice(["min", "max"])))
    if staged:
        _add_staged(case, rng)
    else:
        _add_networks(case, rng)
    state(case)
    if rng.random() < 0.5 or case.components > 1:
        _add_row_on_choices(case, rng)
    if rng.random() < 0.6:
        _add_row_on_outputs(case, rng)
    if rng.random() < 0.3:
        _add_slack(case, rng)
    state(case)
    return case


def _add_networks(case: Case, rng: np.random.Generator) -> None:
    _add_domain(case, rng)
    dtype = _dtype(rng)
    most = 1 if case.domain == "coupled" else 4
    for _ in range(min(most, int(rng.choice([1, 2, 3, 4], p=[0.45, 0.3, 0.15, 0.1])))):
        _add_network(case, dtype, rng)


def _add_staged(case: Case, rng: np.random.Generator) -> None:
    """Stages, and now and then a network more that reads some of them."""
    dtype = _dtype(rng)
    add_stages(case, dtype, _kind(rng), rng)
    if rng.random() < 0.25:
        _add_network(case, dtype, rng)


def _dtype(rng: np.random.Generator) -> torch.dtype:
    return torch.float32 if rng.random() < 0.35 else torch.float64


def _kind(rng: np.random.Generator) -> str:
    return "relu" if rng.random() < RELU_SHARE else str(rng.choice(proof_modules.KINDS))


def _add_domain(case: Case, rng: np.random.Generator) -> None:
    small = 0.5 * rng.normal()
    if case.domain in ("ball", "priced ball"):
        d = int(rng.integers(2, 6))
        case.centre = np.round(rng.normal(size=d), 2)
        case.weights = np.ones(2 * d) if case.domain == "ball" else np.round(rng.uniform(0.5, 2.0, 2 * d), 2)
        case.budget = float(np.round(rng.uniform(0.5, 2.5), 2))
        paid = small if rng.random() < 0.5 else 0.0
        case.free = [case.column(0.0, 2.0, cost=float(paid * w)) for w in case.weights]
        case.inputs = [case.column(c - 2.0, c + 2.0) for c in case.centre.tolist()]
        for i, (x, c) in enumerate(zip(case.inputs, case.centre.tolist(), strict=True)):
            case.rows.append(({x: 1.0, case.free[i]: -1.0, case.free[d + i]: 1.0}, c, c))
        moves = dict(zip(case.free, case.weights.tolist(), strict=True))
        case.rows.append((moves, -np.inf, case.budget))
        return
    d = int(rng.integers(1, 5))
    if case.domain == "coupled":
        case.components = int(rng.integers(2, 4))
        d = case.components * int(rng.integers(1, 3))
    if case.domain == "simplex":
        d += 2
        case.free = [case.column(0.0, 1.0, cost=0.5 * rng.normal()) for _ in range(d)]
        case.rows.append((dict.fromkeys(case.free, 1.0), 1.0, 1.0))
    else:
        for j in range(d):
            whole = case.domain == "integer" or (case.domain == "mixed" and j % 2 == 0)
            low = float(rng.integers(-2, 1)) if whole else -rng.uniform(0.5, 2.0)
            high = low + float(rng.integers(1, 5)) if whole else rng.uniform(0.5, 2.0)
            case.free.append(case.column(low, high, cost=0.5 * rng.normal(), integer=whole))
    case.inputs = list(case.free)


def _read(case: Case, rng: np.random.Generator) -> np.ndarray:
    """(samples, features) columns that a network reads."""
    read = list(case.inputs)
    if case.domain == "coupled":  # each sample has inputs of its own; rows couple them
        return np.array(read).reshape(case.components, -1)
    if case.tied and rng.random() < 0.4:  # chained
        before = case.tied[int(rng.integers(len(case.tied)))]
        read[int(rng.integers(len(read)))] = int(before.outputs[0, 0])
    more = rng.random() < 0.2 and len(read) > 1
    return np.array([read, rng.permutation(read)] if more else [read])


def _add_network(case: Case, dtype: torch.dtype, rng: np.random.Generator) -> None:
    kind, inputs = _kind(rng), _read(case, rng)
    samples = len(inputs)
    drawn = rng.random()
    classifies, q = drawn < 0.35, 3 if drawn < 0.1 or drawn > 0.9 else 1
    state(case)
    z = case.completed(case.sample(300, rng))
    points = np.concatenate([z[:, columns] for columns in inputs])
    module = proof_modules.make(kind, points, q, dtype, rng)
    outputs = np.array(
        [
            [
                case.column(0.0, 1.0, cost=rng.normal(), integer=True)
                if classifies
                else case.column(-np.inf, np.inf, cost=rng.normal())
                for _ in range(q)
            ]
            for _ in range(samples)
        ]
    )
    case.kinds.append(kind)
    case.tied.append(Tied(module, dtype, inputs, outputs, classifies))


def _add_row_on_choices(case: Case, rng: np.random.Generator) -> None:
    z = case.completed(case.sample(200, rng))
    row = np.round(rng.normal(size=len(case.free)), 2) + 0.01
    level = float(np.round(np.quantile(z[:, case.free] @ row, rng.uniform(0.3, 0.9)), 3))
    entries = {j: float(a) for j, a in zip(case.free, row, strict=True) if a != 0.0}
    case.rows.append((entries, -np.inf, level))


def _add_row_on_outputs(case: Case, rng: np.random.Generator) -> None:
    """Cuts off the best of many points; or demands a value of a network exactly; now and then cuts all."""
    outputs = np.concatenate([tied.outputs.ravel() for tied in case.tied])
    z = case.completed(case.sample(2000, rng))
    z = z[case.missed(z) <= 1e-9]
    if len(z) == 0:
        return
    row = np.zeros(len(case.cost))
    row[outputs] = rng.normal(size=len(outputs))
    if rng.random() < 0.4:
        row[case.free] = 0.3 * rng.normal(size=len(case.free))
    activity = z @ row
    best = activity[np.argmin(case.worth(z))]
    level = best - rng.uniform(0.05, 0.8) * (activity.std() + 1e-3)
    drawn = rng.random()
    if drawn < 0.1:
        level = activity.min() - 0.6 * (activity.std() + 1e-3)
    regression = any(not tied.classifies for tied in case.tied)
    exactly = drawn > 0.75 and regression and not all(case.integer[j] for j in case.free)
    if exactly:
        case.equality = len(case.rows)
        level = float(np.quantile(activity, rng.uniform(0.3, 0.7)))
    entries = {int(j): float(row[j]) for j in np.flatnonzero(row)}
    case.rows.append((entries, float(level) if exactly else -np.inf, float(level)))


def _add_slack(case: Case, rng: np.random.Generator) -> None:
    """A host column, whole or not, that pays for an output above a level."""
    tied = case.tied[int(rng.integers(len(case.tied)))]
    if tied.classifies:
        return
    output, whole = int(tied.outputs[0, 0]), bool(rng.random() < 0.6)
    level, reach = float(np.round(0.5 * rng.normal(), 2)), float(np.round(rng.uniform(0.3, 2.0), 2))
    price = float(rng.uniform(0.2, 1.5)) * (1.0 if case.sense == "min" else -1.0)
    column = case.column(0.0, 50.0, cost=price, integer=whole)
    case.slacks.append(Slack(column, output, level, reach, whole))
    case.rows.append(({output: 1.0, column: -reach}, -np.inf, level))
