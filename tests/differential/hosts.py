"""Random small programs without networks that tempt an engine's tolerances, and their exact optima.

The truth is computed in fractions over every whole point: no float is added twice. Two readings of "feasible"
are told apart: a point that meets every row exactly, and one that misses some by no more than the check
allows. A claim has to be true under both where they agree, and must not exclude the second kind where it
says that there is no point at all.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

KINDS = ("penalty", "spread", "fractional", "tiny", "apart", "plain")
TOLERANCE = Fraction(1, 10**6)


@dataclass(frozen=True)
class Program:
    """min or max cost'x over rows and whole points of a box."""

    seed: int
    kind: str
    sense: str
    cost: np.ndarray
    A: np.ndarray
    row_lower: np.ndarray
    row_upper: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


@dataclass(frozen=True)
class Optimum:
    """The best exact value, and the best of all points that pass the check; None without any."""

    exact: Fraction | None
    accepted: Fraction | None


def make(seed: int) -> Program:
    """Program number `seed`; the kinds take turns."""
    chance = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    n, m = int(chance.integers(2, 6)), int(chance.integers(1, 4))
    lower = chance.integers(-3, 1, n).astype(float)
    upper = lower + chance.integers(1, 5, n)
    A = np.round(chance.normal(0, 2, (m, n)), 1) * (chance.random((m, n)) < 0.8)
    cost = np.round(chance.normal(0, 3, n), 1)
    if kind == "penalty":
        A, cost, lower, upper = _with_slack(A, cost, lower, upper, chance)
    elif kind == "spread":
        cost = cost * 10.0 ** chance.integers(-3, 9, n)
    elif kind == "fractional":
        lower, upper = lower - np.round(chance.random(n), 1), upper + np.round(chance.random(n), 1)
    elif kind == "tiny":
        A[-1] = np.round(chance.normal(0, 1e-5, n), 6)
    elif kind == "apart":
        A[-1, 0], A[-1, -1] = 1e9, -0.5
    inside = np.array(
        [chance.integers(np.ceil(a), np.floor(b) + 1) for a, b in zip(lower, upper, strict=True)]
    )
    activity = A @ inside
    room = np.abs(A).sum(axis=1) * chance.uniform(-0.2, 0.6, len(A))
    room[chance.random(len(A)) < 0.3] = 0.0  # the side is met by a point, to the last digit
    above, below = chance.random(len(A)) < 0.7, chance.random(len(A)) < 0.5
    return Program(
        seed, kind, "min" if chance.random() < 0.5 else "max", cost, A,
        np.where(below, activity - np.abs(room) * (room > 0) + room * (room < 0), -np.inf),
        np.where(above, activity + room, np.inf) + np.where(below & (room < 0), 2 * np.abs(room), 0.0),
        lower, upper,
    )  # fmt: skip


def _with_slack(A, cost, lower, upper, chance):
    """One more column, which lets the first row be missed at a price of many orders of magnitude."""
    column = np.zeros((len(A), 1))
    column[0] = -1.0
    price = 10.0 ** chance.integers(6, 11)
    return (
        np.hstack([A, column]), np.append(np.abs(cost), price),
        np.append(lower, 0.0), np.append(upper, 8.0),
    )  # fmt: skip


def optimum(program: Program) -> Optimum:
    """Over every whole point of the box."""
    exact: list[Fraction] = []
    accepted: list[Fraction] = []
    rows = [[Fraction(float(a)) for a in row] for row in program.A]
    cost = [Fraction(float(c)) for c in program.cost]
    ranges = [
        range(int(np.ceil(a - 1e-6)), int(np.floor(b + 1e-6)) + 1)
        for a, b in zip(program.lower, program.upper, strict=True)
    ]
    for point in itertools.product(*ranges):
        missed = max((_missed(row, point, program, i) for i, row in enumerate(rows)), default=Fraction(0))
        if missed <= TOLERANCE:
            value = sum((c * x for c, x in zip(cost, point, strict=True)), Fraction(0))
            accepted.append(value)
            if missed <= 0:
                exact.append(value)
    best = min if program.sense == "min" else max
    return Optimum(best(exact, default=None), best(accepted, default=None))


def _missed(row: list[Fraction], point: tuple[int, ...], program: Program, i: int) -> Fraction:
    activity = sum((a * x for a, x in zip(row, point, strict=True) if a), Fraction(0))
    low, high = program.row_lower[i], program.row_upper[i]
    below = Fraction(float(low)) - activity if np.isfinite(low) else -TOLERANCE
    above = activity - Fraction(float(high)) if np.isfinite(high) else -TOLERANCE
    return max(below, above)
