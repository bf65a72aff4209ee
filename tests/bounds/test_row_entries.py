"""Rows over many boxes: no point of a box is lost, and no row is less than it is said to be."""

import numpy as np
import scipy.sparse as sp

import dovetail as dt
from dovetail.bounds.box import RowEntries

A = np.array([[1.0, -2.0, 0.0], [0.0, 0.0, 0.0], [0.5, 1.0, 3.0]])


def test_no_point_is_lost_and_empty_boxes_are_seen():
    rng = np.random.default_rng(0)
    mip = dt.Mip(
        [1.0, 0.0, 0.0],
        A,
        [-1.0, -np.inf, -np.inf],
        [1.0, np.inf, 2.0],
        -4.0,
        4.0,
        integer=[False, True, False],
    )
    X = rng.uniform(-4.0, 4.0, (4000, 3))
    X[:, 1] = np.round(X[:, 1])
    X = X[np.max(mip.row_violation(X), axis=1) <= 0.0]
    low, high = (np.sort(rng.uniform(-4.0, 4.0, (2, 200, 3)), axis=0)[k] for k in (0, 1))
    lower, upper = low.copy(), high.copy()
    rows = RowEntries.filled(mip.A)
    for a, side in ((rows.a, mip.row_upper), (-rows.a, -mip.row_lower)):
        ends = lower[:, rows.column], upper[:, rows.column]
        rows.pass_on(a, side[rows.number], ends, lower, upper)
    empty = np.any(lower > upper, axis=1)
    held = lost = 0
    for k in range(len(low)):
        inside = X[np.all((low[k] <= X) & (high[k] >= X), axis=1)]
        held += len(inside)
        assert not (empty[k] and len(inside))
        assert np.all((inside >= lower[k]) & (inside <= upper[k]))
        lost += bool(empty[k])
    assert held and 0 < lost < len(low)
    assert np.any(lower > low) and np.any(upper < high)


def test_a_row_is_at_least_what_it_is_said_to_be():
    rng = np.random.default_rng(1)
    low, high = np.sort(rng.uniform(-4.0, 4.0, (2, 50, 3)), axis=0)
    least = RowEntries.filled(sp.csr_array(A)).least(low, high)
    points = low + rng.uniform(size=low.shape) * (high - low)
    assert np.all(points @ A[[0, 2]].T >= least)
    corner = np.where(A[0] > 0.0, low, high)
    assert np.allclose(corner @ A[0], least[:, 0])
    endless = RowEntries.filled(sp.csr_array(A)).least(np.full((1, 3), -np.inf), np.zeros((1, 3)))
    assert endless.tolist() == [[-np.inf, -np.inf]]
