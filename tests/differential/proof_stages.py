"""Random problems in stages: a network that reads what it said a stage before, and chains that share rows."""

from __future__ import annotations

import numpy as np
import torch

from . import proof_modules
from .proof_case import Case, Link, Tied, state

STAGED = ("recurrence", "recurrence by rows", "chains", "recurrence by rows")
"""The state is an output that the next stage reads; or a column of the host that a row makes of it. Chains
are several, of two networks each, and rows couple them."""
NEAR = 1.5
"""Outputs spread over about 1: states within this are what a network of a recurrence is made for."""


def add_stages(case: Case, dtype: torch.dtype, kind: str, rng: np.random.Generator) -> None:
    """The columns of a staged domain and the networks between them."""
    if case.domain == "chains":
        _add_chains(case, dtype, kind, rng)
    else:
        _add_recurrence(case, dtype, kind, rng)
    case.inputs = list(case.free)
    state(case)


def _control(case: Case, rng: np.random.Generator) -> int:
    """One more free column, whole now and then."""
    whole = bool(rng.random() < 0.3)
    low = float(rng.integers(-1, 1)) if whole else -rng.uniform(0.5, 1.5)
    high = low + float(rng.integers(1, 4)) if whole else rng.uniform(0.5, 1.5)
    case.free.append(case.column(low, high, cost=0.5 * rng.normal(), integer=whole))
    return case.free[-1]


def _fixed(case: Case, value: float) -> int:
    column = case.column(value, value)
    case.given[column] = value
    return column


def _output(case: Case, classifies: bool, rng: np.random.Generator) -> int:
    if classifies:
        return case.column(0.0, 1.0, cost=rng.normal(), integer=True)
    return case.column(-np.inf, np.inf, cost=rng.normal())


def _add_recurrence(case: Case, dtype: torch.dtype, kind: str, rng: np.random.Generator) -> None:
    stages, controls = int(rng.integers(2, 5)), int(rng.integers(1, 3))
    by_rows, classifies = case.domain == "recurrence by rows", bool(rng.random() < 0.2)
    before = _control(case, rng) if rng.random() < 0.5 else _fixed(case, float(np.round(rng.normal(), 2)))
    inputs, outputs = [], []
    for _ in range(stages):
        own = [_control(case, rng) for _ in range(controls)]
        inputs.append([before, *own])
        outputs.append([_output(case, classifies, rng)])
        before = _linked(case, before, outputs[-1][0], own[0], rng) if by_rows else outputs[-1][0]
    near = rng.uniform(-NEAR, NEAR, (300, 1 + controls))
    near[:, 1:] = case.sample(300, rng)[:, -controls:]
    module = proof_modules.make(kind, near, 1, dtype, rng)
    case.kinds.append(kind)
    case.tied.append(Tied(module, dtype, np.array(inputs), np.array(outputs), classifies))


def _linked(case: Case, before: int, output: int, control: int, rng: np.random.Generator) -> int:
    """A state that a row makes of the one before, of what the network said and of a control."""
    keeps, moves, adds = (float(np.round(rng.uniform(*reach), 2)) for reach in ((0, 1), (0.3, 1), (-1, 1)))
    far = np.inf if rng.random() < 0.5 else 30.0
    column = case.column(-far, far, cost=0.3 * rng.normal())
    entries, constant = {before: keeps, output: moves, control: adds}, float(np.round(0.3 * rng.normal(), 2))
    case.links.append(Link(column, entries, constant))
    case.rows.append(({column: 1.0, **{j: -a for j, a in entries.items()}}, constant, constant))
    return column


def _add_chains(case: Case, dtype: torch.dtype, kind: str, rng: np.random.Generator) -> None:
    case.components = int(rng.integers(2, 4))
    first = np.array([[_control(case, rng) for _ in range(2)] for _ in range(case.components)])
    classes = rng.random(2) < (0.2, 0.35)
    between = np.array([[_output(case, bool(classes[0]), rng)] for _ in first])
    last = np.array([[_output(case, bool(classes[1]), rng)] for _ in first])
    near = case.sample(300, rng)[:, :2]
    module = proof_modules.make(kind, near, 1, dtype, rng)
    case.tied.append(Tied(module, dtype, first, between, bool(classes[0])))
    near = np.concatenate([case.tied[0].answers(near), near[:, 1:]], axis=1)
    module = proof_modules.make("relu", near, 1, dtype, rng)
    second = np.concatenate([between, first[:, 1:]], axis=1)
    case.tied.append(Tied(module, dtype, second, last, bool(classes[1])))
    case.kinds += [kind, "relu"]
