"""Where a box may be divided: at an integer, an input, a neuron or a cut of trees, all columns of the box.

A network that reads few free inputs is linear soon when these are cut; one that reads many, when the signs of
its neurons are known. The LP of the box says which are worth a look: integers that it leaves fractional,
inputs and neurons of networks whose value it has wrong, cuts of trees whose value it has wrong.
"""

from __future__ import annotations

import numpy as np

from dovetail.branching.divisions import Divisions
from dovetail.branching.input_sets import FEW_INPUTS
from dovetail.branching.model import Model
from dovetail.branching.relaxation import Solved
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.mip import TOLERANCE

MOST = 4
"""Candidates of each kind that are tried, at most (12 took as long on 26 problems of the zoo, and three times
as many boxes where networks read many inputs)."""
MIDDLE = 0.25
"""Of a column's width: no part of a division is smaller."""
POINT = 1e-9
"""Of a column's first width: smaller ones are not divided."""


LEAST = 1e-12
"""A width below which nothing is divided."""


def widths(model: Model, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Of columns, as parts of their first widths; 0 where they are not worth a division."""
    first = model.upper - model.lower
    with np.errstate(invalid="ignore"):
        part = np.where(np.isfinite(first), (upper - lower) / np.maximum(first, LEAST), 1.0)
    return np.where(upper - lower > POINT * np.where(np.isfinite(first), first, 1.0) + LEAST, part, 0.0)


def candidates(
    model: Model, lower: FloatArray, upper: FloatArray, solved: Solved, cuts: Divisions
) -> Divisions:
    """Of one box whose LP was solved and whose trees may be cut so; none where nothing is left to divide."""
    assert solved.x is not None
    x = solved.x[: lower.size]
    width = widths(model, lower, upper)
    wide = width > 0.0
    host = model.host.columns
    integer = np.append(model.host.integer, np.zeros(lower.size - host, dtype=bool))
    fraction = np.abs(x - np.round(x))
    broken = np.flatnonzero(integer & wide & (fraction > TOLERANCE))
    chosen = [broken[np.argsort(-fraction[broken], kind="stable")][:MOST]]
    inputs, neurons = np.zeros(lower.size), np.zeros(lower.size)
    for one, errors in zip(model.networks, solved.errors, strict=True):
        few = wide[one.inputs].sum(1) <= FEW_INPUTS
        for place, error in errors.items():
            share = one.reach[place] * (upper - lower)[one.inputs][:, None]
            share = share / np.maximum(share.sum(2, keepdims=True), LEAST)
            np.add.at(inputs, one.inputs[few].ravel(), (error[..., None] * share).sum(1)[few].ravel())
            if place:
                neurons[one.inner[place]] += error * ~few[:, None]
            else:
                np.add.at(inputs, one.inputs.ravel(), (error * ~few[:, None]).ravel())
    for score in (inputs * wide, neurons * wide):
        first = np.argsort(-score, kind="stable")[:MOST]
        chosen.append(first[score[first] > 0.0])
    if cuts.open.size:
        return cuts
    columns = np.setdiff1d(np.concatenate(chosen), cuts.columns)
    if not columns.size and not cuts.columns.size:
        return anywhere(model, lower, upper, x)
    below, above = _divided(model, columns, lower, upper, x, integer)
    return Divisions(
        np.append(columns, cuts.columns),
        np.append(below, cuts.below),
        np.append(above, cuts.above),
        cuts.wrong,
    )


def anywhere(model: Model, lower: FloatArray, upper: FloatArray, x: FloatArray | None = None) -> Divisions:
    """Of a box whose LP failed, or has nothing wrong at a point `x` that may be refused all the same: what is
    still open, widest first. Beside trees alone such a point is looked for in its cells, and nothing in the
    box is better."""
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
    middle = np.where(np.isfinite(upper - lower), 0.5 * (lower + upper), np.clip(0.0, lower, upper))
    below, above = _divided(model, columns, lower, upper, middle if x is None else x, integer)
    return Divisions(columns, below, above, np.zeros(model.trees.outputs.size))


def widest(model: Model, lower: FloatArray, upper: FloatArray) -> Divisions:
    """Of a box that is closed, but not for everybody: the widest integer or input, if there is one left."""
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
    """The last value below and the first one above: near the LP's point, but for ReLUs: these at 0."""
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
    box: tuple[FloatArray, FloatArray],
    lp: Solved,
    divisions: Divisions,
    lower: FloatArray,
    upper: FloatArray,
) -> FloatArray:
    """(N,) what is left over N parts of a box of what its LP has wrong, from 0 to 1: of integers that are
    fractional, of networks' values, and of trees' (`wrong`, see `Divisions`); or of what tables have open."""
    assert lp.x is not None
    wrong = divisions.wrong
    if divisions.open.size:
        share = divisions.open / np.maximum(box[1] - box[0], LEAST)
        return np.asarray((upper - lower) @ share / divisions.open.sum())
    whole = np.flatnonzero(model.host.integer)
    x = lp.x[whole]
    fraction = np.abs(x - np.round(x)) * (np.abs(x - np.round(x)) > TOLERANCE)
    still = ((lower[:, whole] <= x) & (x <= upper[:, whole])) @ fraction
    parts = [still / fraction.sum()] if np.any(fraction) else []
    low, high = box[0][None], box[1][None]
    total, left = 0.0, np.zeros(len(lower))
    for one, error in zip(model.networks, lp.errors, strict=True):
        for (sources, now), (_, then) in zip(one.heights(low, high), one.heights(lower, upper), strict=True):
            weight = np.where(now[0] > 0.0, error[sources[0]], 0.0)
            left += (then * (weight / np.maximum(now[0], LEAST))).sum((1, 2))
            total += float(weight.sum())
    if np.any(wrong):
        outputs = model.trees.outputs
        now = (box[1] - box[0])[outputs]
        share = wrong * (now > 0.0) / np.maximum(now, LEAST)
        left += (upper - lower)[:, outputs] @ share
        total += float(share @ now)
    if total > 0.0:
        parts.append(left / total)
    return np.asarray(np.mean(parts, axis=0)) if parts else np.ones(len(lower))
