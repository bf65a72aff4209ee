"""A program with planes in place of curves: what tangents are added to, and boxes are passed on in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import PAD, Box, narrow, propagate
from dovetail.core.arrays import FloatArray
from dovetail.core.mip import Mip
from dovetail.methods.quadratic_mip.curve import Curve, Plane

ROUNDS = 4
"""Of passing bounds on, from rows to squares and from squares to what is squared."""

Rows = tuple[sp.csr_array, FloatArray, FloatArray]


def as_rows(planes: Sequence[Plane], columns: int) -> Rows:
    """sign y - slopes'x >= constant."""
    place = np.concatenate([np.append(plane.inputs, plane.output) for plane in planes])
    data = np.concatenate([np.append(-plane.slopes, plane.sign) for plane in planes])
    indptr = np.cumsum([0, *(plane.inputs.size + 1 for plane in planes)])
    matrix = sp.csr_array((data, place, indptr), shape=(len(planes), columns))
    matrix.eliminate_zeros()
    constants = np.array([plane.constant for plane in planes])
    return matrix, constants, np.full(len(planes), np.inf)


def with_planes(mip: Mip, planes: Sequence[Plane]) -> Mip:
    """`mip` with the planes as rows at its end."""
    if not planes:
        return mip
    rows, lower, upper = as_rows(planes, mip.n_columns)
    return replace(
        mip,
        A=sp.vstack([mip.A, rows], format="csr"),
        row_lower=np.concatenate([mip.row_lower, lower]),
        row_upper=np.concatenate([mip.row_upper, upper]),
        row_names=None,
    )


def given_way(mip: Mip, curves: Sequence[Curve]) -> Mip:
    """`mip` with room in the rows and bounds of curves' outputs for what the deployed blocks may round."""
    room = np.zeros(mip.n_columns)
    np.maximum.at(room, [curve.output for curve in curves], [curve.slack for curve in curves])
    rows = sp.csr_array(abs(mip.A)) @ room
    return replace(
        mip,
        row_lower=mip.row_lower - rows,
        row_upper=mip.row_upper + rows,
        lower=mip.lower - room,
        upper=mip.upper + room,
    )


def propagated(mip: Mip, curves: Sequence[Curve]) -> Box:
    """Bounds that rows imply, and squares: a square that is bounded bounds what is squared."""
    lower, upper = mip.lower.copy(), mip.upper.copy()
    squares = np.array([curve.output for curve in curves if curve.squares], dtype=np.int64)
    narrow(lower, upper, squares, np.zeros(squares.size), np.full(squares.size, np.inf))
    box = Box(lower, upper)
    for _ in range(ROUNDS):
        box = propagate(replace(mip, lower=box.lower, upper=box.upper))
        before = box.lower.copy(), box.upper.copy()
        for curve in curves:
            if curve.single:
                _root(curve, box)
        if np.array_equal(before[0], box.lower) and np.array_equal(before[1], box.upper):
            break
    return box


def _root(curve: Curve, box: Box) -> None:
    """|a x + e| is at most the root of what its square is at most."""
    most = box.upper[curve.output]
    if not np.isfinite(most):
        return
    a, e, j = float(curve.F[0, 0]), float(curve.e[0]), int(curve.inputs[0])
    root = float(np.sqrt(max(most, 0.0))) * (1.0 + PAD) + PAD + curve.rounded[1]
    ends = sorted(((-root - e) / a, (root - e) / a))
    pad = PAD * (1.0 + max(map(abs, ends)))
    low, high = max(box.lower[j], ends[0] - pad), min(box.upper[j], ends[1] + pad)
    if low <= high:  # where nothing is left, the rows will say so
        box.lower[j], box.upper[j] = low, high
