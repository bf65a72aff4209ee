"""The candidates for branching in a box: an integer, an input, a neuron or a split value of trees.

A network with few free inputs is nearly linear soon after branching on the inputs; a network with many free
inputs, after the signs of its neurons are fixed. The LP of the box selects the candidates: integers with
fractional values, inputs and neurons of networks whose LP value differs from the true value, and split
values of trees whose LP value differs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dovetail.branching.divisions import Divisions
from dovetail.branching.input_sets import FEW_INPUTS
from dovetail.branching.model import Model
from dovetail.branching.relaxation import Solved
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.mip import TOLERANCE

MOST = 4
"""Largest number of candidates of each kind (12 took as long on 26 problems of the zoo, and needed three
times as many boxes if networks read many inputs)."""
MIDDLE = 0.25
"""Fraction of a column's width: no part of a division is smaller."""
POINT = 1e-9
"""Fraction of a column's first width: narrower columns are not divided."""


LEAST = 1e-12
"""Columns narrower than this are not divided."""


def widths(model: Model, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Widths of columns relative to their first widths; 0 if they are not divided."""
    first = model.upper - model.lower
    with np.errstate(invalid="ignore"):
        part = np.where(np.isfinite(first), (upper - lower) / np.maximum(first, LEAST), 1.0)
    return np.where(upper - lower > POINT * np.where(np.isfinite(first), first, 1.0) + LEAST, part, 0.0)


def candidates(
    model: Model,
    lower: FloatArray,
    upper: FloatArray,
    solved: Sequence[Solved],
    cuts: Sequence[Divisions],
) -> list[Divisions]:
    """Candidates for N boxes with solved LPs, including divisions of trees; none if the LP's point satisfies
    everything."""
    x, width = points(solved, lower, upper), widths(model, lower, upper)
    integer = np.append(model.host.integer, np.zeros(lower.shape[1] - model.host.columns, dtype=bool))
    fraction = np.abs(x - np.round(x))
    inputs, neurons = np.zeros(lower.shape), np.zeros(lower.shape)
    for one, wrong in zip(model.networks, wrongs(model, solved), strict=True):
        wide = (upper - lower)[:, one.inputs]
        few = (width[:, one.inputs] > 0.0).sum(2) <= FEW_INPUTS
        for place, sources, high in one.heights(lower, upper):
            error = wrong[place] * high if place in wrong else 0.0 * high
            for source in sources:
                reach = one.reach[source]
                share = error * few[..., None] / np.maximum(wide @ reach.T, LEAST)
                np.add.at(inputs.T, one.inputs, np.moveaxis((share @ reach) * wide, 0, -1))
                to = neurons if source else inputs
                np.add.at(to.T, one.column(source), np.moveaxis(error * ~few[..., None], 0, -1))
    scores = fraction * integer * (fraction > TOLERANCE), inputs, neurons
    best = []
    for score in (score * (width > 0.0) for score in scores):
        first = np.argsort(-score, axis=1, kind="stable")[:, :MOST]
        best.append(np.where(np.take_along_axis(score, first, 1) > 0.0, first, -1))
    found = []
    for k, (columns, own) in enumerate(zip(np.hstack(best), cuts, strict=True)):
        columns = np.setdiff1d(columns[columns >= 0], own.columns)
        below, above = _divided(model, columns, lower[k], upper[k], x[k], integer)
        found.append(
            Divisions(
                np.append(columns, own.columns),
                np.append(below, own.below),
                np.append(above, own.above),
                own.wrong,
            )
        )
    return found


def points(solved: Sequence[Solved], lower: FloatArray, upper: FloatArray) -> FloatArray:
    """(N, columns) the points of LPs, or the nearest points in the boxes."""
    return np.clip(np.stack([one.x[: lower.shape[1]] for one in solved if one.x is not None]), lower, upper)


def wrongs(model: Model, solved: Sequence[Solved]) -> list[dict[int, FloatArray]]:
    """For each network, by place: (N, samples, size) the error of N LPs, per unit of height."""
    return [
        {place: np.stack([one.wrong[k][place] for one in solved]) for place in solved[0].wrong[k]}
        for k in range(len(model.networks))
    ]


def anywhere(model: Model, lower: FloatArray, upper: FloatArray, x: FloatArray | None = None) -> Divisions:
    """Candidates for a box whose LP failed, or whose LP point `x` has no error but may be refused
    nevertheless: open columns, widest first. If all predictors are trees, the cells of this point are
    searched, and the box contains no better point."""
    width = widths(model, lower, upper)
    integer = np.append(model.host.integer, np.zeros(lower.size - model.host.columns, dtype=bool))
    still = integer & (width > 0.0)
    if model.trees.samples and x is None:
        still[model.trees.inputs] |= width[model.trees.inputs] > 0.0
    elif model.trees.samples and not model.networks:
        still[:] = False
    for one in model.networks:
        read = one.inputs[one.open_area(lower[None], upper[None])[0] > 0.0].ravel()
        still[read] |= width[read] > 0.0
    columns = np.flatnonzero(still)
    columns = columns[np.argsort(-width[columns], kind="stable")][:MOST]
    middle = np.clip(0.0, lower, upper)
    bounded = np.isfinite(lower) & np.isfinite(upper)
    middle[bounded] = 0.5 * (lower[bounded] + upper[bounded])
    below, above = _divided(model, columns, lower, upper, middle if x is None else x, integer)
    return Divisions(columns, below, above, np.zeros(model.trees.outputs.size))


def widest(model: Model, lower: FloatArray, upper: FloatArray) -> Divisions:
    """A division of a closed box for the checker: the widest integer or input that is left, if any."""
    read = model.host.integer.copy()
    for columns in (model.trees.inputs, *(one.inputs.ravel() for one in model.networks)):
        read[columns] = True
    width = np.where(read, widths(model, lower, upper)[: read.size], 0.0)
    columns = np.array([np.argmax(width)])[: int(np.any(width > 0.0))]
    middle = np.clip(0.0, lower, upper)
    if np.all(np.isfinite(upper[columns] - lower[columns])):
        middle[columns] = 0.5 * (lower[columns] + upper[columns])
    integer = np.append(model.host.integer, np.zeros(lower.size - model.host.columns, dtype=bool))
    below, above = _divided(model, columns, lower, upper, middle, integer)
    return Divisions(columns, below, above, np.zeros(model.trees.outputs.size))


def _divided(
    model: Model, columns: IntArray, lower: FloatArray, upper: FloatArray, x: FloatArray, integer: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """The last value below and the first one above: near the LP's point; ReLUs are divided at 0."""
    low, high, here = lower[columns], upper[columns], x[columns]
    at = np.clip(here, low + MIDDLE * (high - low), high - MIDDLE * (high - low))
    bends = model.relus[columns] & (low < 0.0) & (high > 0.0)
    at = np.where(bends, 0.0, at)
    whole = integer[columns]
    fractional = np.abs(here - np.round(here)) > TOLERANCE
    middle = np.where(np.isfinite(high - low), 0.5 * (low + high), here)
    down = np.floor(np.where(fractional, here, middle))
    down = np.clip(down, low, high - 1.0)
    return np.where(whole, down, at), np.where(whole, down + 1.0, at)


def remaining(
    model: Model,
    boxes: tuple[FloatArray, FloatArray],
    solved: Sequence[Solved],
    divisions: Sequence[Divisions],
    parts: tuple[FloatArray, FloatArray],
    owner: IntArray,
) -> FloatArray:
    """(P,) the fraction, from 0 to 1, of the errors of N LPs that remains over P parts of their boxes: of
    fractional integers, networks' values, and trees' (`wrong`, see `Divisions`); or of open tables. `owner`
    is the box of each part."""
    whole, (lower, upper) = np.flatnonzero(model.host.integer), parts
    x = points(solved, *boxes)[:, whole]
    fraction = np.abs(x - np.round(x)) * (np.abs(x - np.round(x)) > TOLERANCE)
    inside = (lower[:, whole] <= x[owner]) & (x[owner] <= upper[:, whole])
    total, left = np.zeros(len(x)), np.zeros(len(lower))
    for one, wrong in zip(model.networks, wrongs(model, solved), strict=True):
        for (place, _, now), (_, _, then) in zip(one.heights(*boxes), one.heights(*parts), strict=True):
            if place in wrong:
                total += (now * wrong[place]).sum((1, 2))
                left += (then * wrong[place][owner]).sum((1, 2))
    outputs = model.trees.outputs
    if outputs.size:
        now = (boxes[1] - boxes[0])[:, outputs]
        share = np.stack([one.wrong for one in divisions]) * (now > 0.0) / np.maximum(now, LEAST)
        total += (share * now).sum(1)
        left += (share[owner] * (upper - lower)[:, outputs]).sum(1)
    found, count = np.zeros(len(lower)), np.zeros(len(lower))
    for done, of in (((inside * fraction[owner]).sum(1), fraction.sum(1)), (left, total)):
        found += np.where(of > 0.0, 1.0, 0.0)[owner] * done / np.where(of > 0.0, of, 1.0)[owner]
        count += (of > 0.0)[owner]
    return np.where(count > 0.0, found / np.maximum(count, 1.0), 1.0)
