"""Random small programs without networks that tempt an engine's tolerances, and their exact optima.

The truth is computed in fractions: over every whole point, and for each over every vertex of what is left
(at most two continuous columns). Two optima are told apart: of the points that meet every row exactly, and of
those that miss some by no more than the check allows.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

KINDS = ("penalty", "spread", "fractional", "tiny", "apart", "plain", "dear slack", "dear goods", "mixed")
TOLERANCE, HAIR = Fraction(1, 10**6), Fraction(1, 10**12)
"""What the check allows, and by how much its floats may read it otherwise."""


@dataclass(frozen=True)
class Program:
    """min or max cost'x over rows and a box, whole in its integers."""

    seed: int
    kind: str
    sense: str
    cost: np.ndarray
    A: np.ndarray
    row_lower: np.ndarray
    row_upper: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    integer: np.ndarray


@dataclass(frozen=True)
class Optimum:
    """The best value of exact points, of those that surely pass the check, of those that may; None: none."""

    exact: Fraction | None
    accepted: Fraction | None
    possible: Fraction | None


def make(seed: int) -> Program:
    """Program number `seed`; the kinds take turns."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    n, m = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    lower = rng.integers(-3, 1, n).astype(float)
    upper = lower + rng.integers(1, 5, n)
    A = np.round(rng.normal(0, 2, (m, n)), 1) * (rng.random((m, n)) < 0.8)
    cost = np.round(rng.normal(0, 3, n), 1)
    integer = np.ones(n, bool)
    if kind == "spread":
        cost = cost * 10.0 ** rng.integers(-3, 9, n)
    elif kind == "fractional":
        lower, upper = lower - np.round(rng.random(n), 1), upper + np.round(rng.random(n), 1)
    elif kind == "tiny":
        A[-1] = np.round(rng.normal(0, 1e-5, n), 6)
    elif kind == "apart":
        A[-1, 0], A[-1, -1] = 1e9, -0.5
    elif kind in ("mixed", "dear slack", "dear goods"):
        integer[: int(rng.integers(1, 3))] = False
        upper[2:] = np.minimum(upper[2:], lower[2:] + 2.0)  # few whole points: each has its vertices
    if kind == "dear goods":
        cost[0] = 10.0 ** rng.integers(6, 11)
    sense = "min" if rng.random() < 0.5 else "max"
    low, high = _sides(A, lower, upper, rng)
    program = Program(seed, kind, sense, cost, A, low, high, lower, upper, integer)
    return _with_slack(program, rng) if kind in ("penalty", "dear slack") else program


def _sides(
    A: np.ndarray, lower: np.ndarray, upper: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Limits around what a whole point makes of the rows: some touch it, some leave it out."""
    activity = A @ rng.integers(np.ceil(lower), np.floor(upper) + 1)
    size = np.abs(A).sum(axis=1)
    below, above = size * rng.uniform(-0.2, 0.6, (2, len(A)))
    below[rng.random(len(A)) < 0.3] = 0.0
    above[rng.random(len(A)) < 0.3] = 0.0
    low = np.where(rng.random(len(A)) < 0.5, activity - below, -np.inf)
    high = np.where(rng.random(len(A)) < 0.7, activity + above, np.inf)
    return low, np.maximum(low, high)


def _with_slack(program: Program, rng: np.random.Generator) -> Program:
    """One more column, which lets the first row be missed at a price of many orders of magnitude."""
    column = np.zeros((len(program.A), 1))
    column[0] = -1.0
    price = 10.0 ** rng.integers(6, 11)
    whole = program.kind == "penalty"
    return replace(
        program,
        sense="min",
        A=np.hstack([program.A, column]),
        cost=np.append(program.cost, price),
        lower=np.append(program.lower, 0.0),
        upper=np.append(program.upper, 8.0 if whole or rng.random() < 0.5 else np.inf),
        integer=np.append(program.integer, whole) if whole else np.append(_fewer(program.integer), False),
    )


def _fewer(integer: np.ndarray) -> np.ndarray:
    """At most one continuous column, so that with a slack there are two."""
    return integer | (np.arange(integer.size) > 0)


def optimum(program: Program) -> Optimum:
    """Over every whole point of the box, and every vertex of what is left."""
    return Optimum(*(_best(program, room) for room in (Fraction(0), TOLERANCE - HAIR, TOLERANCE + HAIR)))


def _best(program: Program, room: Fraction) -> Fraction | None:
    whole, rest = np.flatnonzero(program.integer), np.flatnonzero(~program.integer)
    limits = _limits(program, whole, rest, room)
    cost, unit = _whole_numbers([Fraction(c) for c in program.cost.tolist()])
    fixed, free = [cost[j] for j in whole], [cost[j] for j in rest]
    values = []
    for point in _whole_points(program, whole):
        left = [(normal, side - _dot(row, point)) for row, normal, side in limits]
        for corner, scale in _corners(left, len(rest)):
            values.append(Fraction(scale * _dot(fixed, point) + _dot(free, corner), unit * scale))
    return (min if program.sense == "min" else max)(values, default=None)


def _whole_points(program: Program, whole: np.ndarray) -> list[list[int]]:
    """The whole points of the box; without continuous columns only those that are anywhere near the rows."""
    low, high = np.ceil(program.lower[whole] - 1e-6), np.floor(program.upper[whole] + 1e-6)
    ranges = [np.arange(a, b + 1) for a, b in zip(low, high, strict=True)]
    points = np.array(list(itertools.product(*ranges)), dtype=float)
    if np.all(program.integer):
        activity, size = points @ program.A.T, np.abs(points) @ np.abs(program.A).T
        missed = np.maximum(program.row_lower - activity, activity - program.row_upper)
        points = points[np.all(missed <= 1e-5 + 1e-9 * size, axis=1)]
    return [[int(x) for x in point] for point in points]


def _whole_numbers(values: list[Fraction]) -> tuple[list[int], int]:
    """Numerators over one denominator: as exact as fractions, and many times faster."""
    scale = math.lcm(*(value.denominator for value in values))
    return [int(value * scale) for value in values], scale


Limit = tuple[list[int], list[int], int]


def _limits(program: Program, whole: np.ndarray, rest: np.ndarray, room: Fraction) -> list[Limit]:
    """Everything as row'x <= side in whole numbers: the row on whole columns and on the others, the side."""
    rows = np.vstack([program.A, np.eye(len(program.cost))[rest]])
    lower = np.append(program.row_lower, program.lower[rest])
    upper = np.append(program.row_upper, program.upper[rest])
    limits: list[Limit] = []
    for row, low, high in zip(rows, lower, upper, strict=True):
        for signed, side in ((row, high), (-row, -low)):
            if np.isfinite(side):
                exact = [*map(Fraction, signed.tolist()), Fraction(float(side)) + room]
                numbers, _ = _whole_numbers(exact)
                limits.append(([numbers[j] for j in whole], [numbers[j] for j in rest], numbers[-1]))
    return limits


def _dot(values: Sequence[int], point: Sequence[int]) -> int:
    return sum(map(operator.mul, values, point))


def _corners(limits: list[tuple[list[int], int]], dimension: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """The corners of {v: normal'v <= side}, which has no line in it, for at most two dimensions.

    Each as numerators over one positive denominator.
    """
    corners: list[tuple[tuple[int, ...], int]] = []
    if dimension == 0:
        corners = [((), 1)]
    elif dimension == 1:
        corners = [((side,), normal[0]) for normal, side in limits if normal[0]]
    else:
        for ((a, b), p), ((c, d), q) in itertools.combinations(limits, 2):
            if det := a * d - b * c:
                corners.append(((p * d - b * q, a * q - c * p), det))
    for corner, scale in corners:
        above = tuple(-x for x in corner) if scale < 0 else corner
        if all(_dot(normal, above) <= side * abs(scale) for normal, side in limits):
            yield above, abs(scale)
