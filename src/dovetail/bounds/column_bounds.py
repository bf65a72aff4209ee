"""What the columns' bounds alone say of a problem, part by part: no row and no vector over all is looked at.

Of many blocks this is all that is known before the search begins; an LP over them would take as long.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dovetail.bounds.box import UNIT
from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.mip import TOLERANCE
from dovetail.core.problem import Problem
from dovetail.core.row_part import ColumnPart


def no_whole_number(problem: Problem) -> int | None:
    """A column, an integer or a class, between whose bounds no whole number lies."""
    for part, classes in _parts(problem):
        whole = part.integer if classes is None else part.integer | classes
        if np.any(whole):
            lower, upper = _limits(part, classes)
            empty = whole & (np.ceil(lower - TOLERANCE) > np.floor(upper + TOLERANCE))
            if np.any(empty):
                return part.first + int(np.argmax(np.broadcast_to(empty, part.shape)))
    return None


def least_cost(problem: Problem) -> float:
    """What no point between the columns' bounds costs less than, in minimisation form; rounded outward."""
    sign, terms = problem.stated.sign, [problem.stated.sign * problem.stated.offset]
    for part, classes in _parts(problem):
        if not part.costs:
            continue
        cost, (lower, upper) = sign * part.cost, _limits(part, classes)
        with np.errstate(invalid="ignore"):  # 0 times infinity
            least = np.where(cost == 0.0, 0.0, cost * np.where(cost > 0.0, lower, upper))
        if not np.all(np.isfinite(least)):
            return -math.inf
        least = least - 2.0 * UNIT * np.abs(least)  # each product is rounded once
        if least.size == 1:  # one number, as often as there are columns: another product
            terms.append(float(least.ravel()[0]) * (part.shape[0] * part.shape[1]))
            terms.append(-2.0 * UNIT * abs(terms[-1]))
        else:
            terms += np.broadcast_to(least, part.shape).ravel().tolist()
    total = math.fsum(terms)
    return total - 2.0 * UNIT * abs(total)


def _parts(problem: Problem) -> Iterator[tuple[ColumnPart, BoolArray | None]]:
    """Parts, and which of their columns are classes, one answer for all where all are; None where none is."""
    outputs = [block.outputs.ravel() for block in problem.blocks if block.classifies]
    spans = [(int(columns.min()), int(columns.max())) for columns in outputs]
    for part in problem.stated.columns:
        size = part.shape[0] * part.shape[1]
        end = part.first + size
        near = [c for c, (low, high) in zip(outputs, spans, strict=True) if low < end and high >= part.first]
        mine = np.concatenate([np.empty(0, np.int64), *(c[(c >= part.first) & (c < end)] for c in near)])
        if mine.size == size:  # no column is written twice
            yield part, np.array(True)
        elif mine.size:
            classes = np.zeros(size, dtype=bool)
            classes[mine - part.first] = True
            yield part, classes.reshape(part.shape)
        else:
            yield part, None


def _limits(part: ColumnPart, classes: BoolArray | None) -> tuple[FloatArray, FloatArray]:
    """Bounds; classes are 0 or 1."""
    if classes is None:
        return part.lower, part.upper
    lower = np.where(classes, np.maximum(np.ceil(part.lower - TOLERANCE), 0.0), part.lower)
    return lower, np.where(classes, np.minimum(np.floor(part.upper + TOLERANCE), 1.0), part.upper)
