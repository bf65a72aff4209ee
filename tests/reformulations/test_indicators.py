"""Indicators as rows: the same points are feasible, and what has no finite M is named.

By how much an indicator's row is missed while it is switched on.

Indicators as one-sided rows: the most that each can be is rounded up, never down.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.bounds.box import Box, propagate
from dovetail.core.special_constraints import Indicator
from dovetail.reformulations import indicators as rewriting
from dovetail.reformulations.indicators import IndicatorRows, IndicatorViolation, OneSidedRows
from dovetail.reformulations.reformulated import Reformulated
from dovetail.run.budget import Budget
from tests.conftest import FULL

SEEDS = range(400 if FULL else 6)


def with_indicators(mip, indicators):
    return rewriting.with_indicators(mip, indicators, propagate(mip.loosened()), Budget())


def feasible(mip, x):
    activity = mip.A @ x
    return bool(np.all(activity >= mip.row_lower - 1e-9) and np.all(activity <= mip.row_upper + 1e-9))


def kept(indicator, x):
    if x[indicator.binary] != indicator.active:
        return True
    activity = float(np.dot(indicator.coefficients, x[list(indicator.columns)]))
    return indicator.lower - 1e-9 <= activity <= indicator.upper + 1e-9


def random_indicator(rng, columns, binaries, k):
    places = rng.choice(columns, size=rng.integers(1, 4), replace=True)  # a column may come twice
    limit = float(rng.integers(-4, 5))
    lower, upper = [
        (-np.inf, limit), (limit, np.inf), (limit, limit), (limit, limit + 2), (-np.inf, np.inf)
    ][rng.integers(5)]  # fmt: skip
    entries = rng.integers(-3, 4, size=places.size).astype(float)
    return Indicator(int(rng.choice(binaries)), int(rng.integers(2)), places, entries, lower, upper, f"i{k}")


def points_of(mip):
    return (
        np.array(x, dtype=float)
        for x in product(*map(range, mip.lower.astype(int), mip.upper.astype(int) + 1))
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_points_are_feasible(seed):
    rng = np.random.default_rng(seed)
    lower = np.array([0, 0, *rng.integers(-2, 1, size=3)])
    upper = np.array([1, 1, *rng.integers(0, 3, size=3)])
    if rng.random() < 0.3:  # a binary that is fixed
        lower[0] = upper[0] = rng.integers(2)
    A = rng.integers(-2, 3, size=(2, 5))
    mip = dt.Mip(np.zeros(5), A, -np.inf, rng.integers(0, 6, size=2), lower, upper, True)
    indicators = [random_indicator(rng, 5, 2, k) for k in range(3)]
    rows, _ = with_indicators(mip, indicators)
    for x in points_of(mip):
        wanted = feasible(mip, x) and all(kept(indicator, x) for indicator in indicators)
        assert feasible(rows, x) == wanted, x


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_that_only_rows_give(seed):
    """Columns are free; a row for each bound takes its place, or a rotated box that only an LP sees."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 4)
    box = [[0, 0, 1, 0], [0, 0, 0, 1]] if seed % 2 else [[0, 0, 1, 1], [0, 0, 1, -1]]
    mip = dt.Mip(np.zeros(4), box, -size, size, [0, 0, -np.inf, -np.inf], [1, 1, np.inf, np.inf], True)
    indicators = [random_indicator(rng, 4, 2, k) for k in range(3)]
    rows, _ = with_indicators(mip, indicators)
    for x in product((0, 1), (0, 1), range(-size, size + 1), range(-size, size + 1)):
        x = np.array(x, dtype=float)
        wanted = feasible(mip, x) and all(kept(indicator, x) for indicator in indicators)
        assert feasible(rows, x) == wanted, x


def test_m_is_as_small_as_bounds_allow():
    mip = dt.Mip([0, 0, 0], lower=[0, -1, 2], upper=[1, 3, 5], integer=[True, False, False])
    rows, _ = with_indicators(mip, [Indicator(0, 1, [1, 2], [2.0, -1.0], -np.inf, 1.0, "c")])
    assert rows.A.toarray()[0] == pytest.approx([3.0, 2.0, -1.0], rel=2e-6)  # 2 * 3 - 2 - 1
    assert rows.row_upper[0] == pytest.approx(4.0, rel=2e-6)
    rows, _ = with_indicators(mip, [Indicator(0, 0, [1, 2], [2.0, -1.0], 0.0, np.inf, "c")])
    assert rows.A.toarray()[0] == pytest.approx([-7.0, -2.0, 1.0], rel=2e-6)  # at least -2 - 5
    assert rows.row_upper[0] == 0.0


def test_the_relaxation_is_asked_where_bounds_say_nothing():
    lower, upper = [0, -np.inf, -np.inf], [1, np.inf, np.inf]
    mip = dt.Mip(np.zeros(3), [[0, 1, 1], [0, 1, -1]], -np.inf, [4, 2], lower, upper, [True, False, False])
    rows, _ = with_indicators(mip, [Indicator(0, 1, [1], [1.0], -np.inf, 1.0, "c")])
    assert rows.A.toarray()[2] == pytest.approx([2.0, 1.0, 0.0], rel=1e-5)  # x <= 3


@pytest.mark.parametrize("reach", [np.inf, 1e7])
def test_without_time_nothing_is_asked_and_nothing_is_cut_off(reach):
    """An indicator that only the relaxation limits is left to a block; one with a large M keeps it."""
    mip = dt.Mip(
        np.zeros(3), [[0, 1, 1], [0, 1, -1]], -np.inf, [4, 2],
        [0, -reach, -reach], [1, reach, reach], [True, False, False],
    )  # fmt: skip
    indicator = Indicator(0, 1, [1], [1.0], -np.inf, 1.0, "c")
    rows, left = rewriting.with_indicators(mip, [indicator], Box(mip.lower, mip.upper), Budget(0.0))
    assert left == (() if np.isfinite(reach) else (indicator,))
    assert feasible(rows, np.array([0.0, 3.0, 1.0]))
    assert feasible(rows, np.array([1.0, 3.0, 1.0])) != np.isfinite(reach)


def test_a_binary_that_cannot_be_switched_off():
    mip = dt.Mip(np.zeros(2), [[1, 0]], 1, 1, [0, -np.inf], [1, np.inf], [True, False])
    rows, _ = with_indicators(mip, [Indicator(0, 1, [1], [1.0], 2.0, 2.0, "c")])
    assert feasible(rows, np.array([1.0, 2.0]))
    assert not feasible(rows, np.array([1.0, 2.1]))
    assert not feasible(rows, np.array([1.0, 1.9]))


@pytest.mark.parametrize(("fixed", "active", "rows"), [(1, 1, 1), (0, 1, 0), (0, 0, 1), (1, 0, 0)])
def test_a_fixed_binary_needs_no_m(fixed, active, rows):
    mip = dt.Mip([0, 0], lower=[fixed, -np.inf], upper=[fixed, np.inf], integer=[True, False])
    written, _ = with_indicators(mip, [Indicator(0, active, [1], [1.0], -np.inf, 3.0, "c")])
    assert written.n_rows == rows
    if rows:
        assert written.A.toarray().tolist() == [[0.0, 1.0]]


def test_what_nothing_limits_is_handed_back():
    mip = dt.Mip(np.zeros(4), lower=[0, 0, -np.inf, 0], upper=[1, 1, np.inf, np.inf],
                 integer=[True, True, False, False], names=["on", "off", "flow", "stock"])  # fmt: skip
    fine = Indicator(0, 1, [3], [-1.0], -np.inf, 0.0, "fine")  # -stock <= 0 always holds
    lost = Indicator(0, 1, [1, 2], [1.0, 1.0], -np.inf, 0.0, "lost")
    assert with_indicators(mip, [fine])[0].n_rows == 1
    rows, left = with_indicators(mip, [fine, lost])
    assert rows.n_rows == 1 and left == (lost,)


@pytest.mark.parametrize(("upper", "integer", "words"), [(2, True, "integer"), (1, False, "continuous")])
def test_only_a_binary_can_switch(upper, integer, words):
    mip = dt.Mip([0, 0], lower=0, upper=[upper, 5], integer=[integer, False], names=["b", "x"])
    with pytest.raises(dt.ModelError, match=f"constraint c: b is {words}"):
        with_indicators(mip, [Indicator(0, 1, [1], [1.0], -np.inf, 0.0, "c")])


def test_names_stay_distinct():
    mip = dt.Mip([0, 0], [[1, 1]], 0, 2, 0, [1, 5], [True, False], row_names=["c"])
    rows, _ = with_indicators(mip, [Indicator(0, 1, [1], [1.0], 2.0, 3.0, "c")])
    assert rows.row_names == ("c", "c#2", "c#3")
    assert with_indicators(mip, [])[0] is mip


def test_an_empty_row():
    mip = dt.Mip([0, 0], lower=0, upper=1, integer=True)
    rows, _ = with_indicators(mip, [Indicator(0, 1, [], [], 1.0, np.inf, "never")])
    assert feasible(rows, np.array([0.0, 0.0]))
    assert not feasible(rows, np.array([1.0, 0.0]))


def largest_when_off(mip, indicator, sign):
    """The most that sign * (the row) is at a feasible point of integers with the binary switched off."""
    found = [
        sign * float(np.dot(indicator.coefficients, x[list(indicator.columns)]))
        for x in points_of(mip)
        if feasible(mip, x) and x[indicator.binary] != indicator.active
    ]
    return max(found, default=-np.inf)


def written_room(mip, indicator, box=None):
    """How large each side of the row may be, as written, while it is switched off; upper sides first."""
    given = propagate(mip.loosened()) if box is None else box
    rows, left = rewriting.with_indicators(mip, [indicator], given, Budget())
    assert not left
    A, limit = rows.A.toarray()[mip.n_rows :], rows.row_upper[mip.n_rows :]
    own = np.zeros(mip.n_columns)
    np.add.at(own, indicator.columns, indicator.coefficients)
    off = 1.0 - indicator.active
    room = []
    for row, most in zip(A, limit, strict=True):
        sign = (
            1.0 if np.allclose(np.delete(row, indicator.binary), np.delete(own, indicator.binary)) else -1.0
        )
        switch = row[indicator.binary] - sign * own[indicator.binary]
        room.append((sign, most - switch * off))
    return room


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("by_lp", [False, True])
def test_m_is_never_less_than_the_true_most(seed, by_lp):
    """Columns are free where an LP has to find M; in both cases a box of integers holds every point."""
    rng = np.random.default_rng(seed)
    lower, upper = np.array([0, 0, -3, -3, -3]), np.array([1, 1, 3, 3, 3])
    A = np.vstack([rng.integers(-3, 4, size=(2, 5)), [0, 0, 1, 1, 1], [0, 0, 1, -1, 0], [0, 0, 0, 1, -1]])
    limits = [*rng.integers(2, 8, size=2), 5, 4, 4]
    mip = dt.Mip(np.zeros(5), A, [-np.inf, -np.inf, -5, -4, -4], limits, lower, upper, True)
    entries = rng.integers(1, 4, size=2) * rng.choice([-1.0, 1.0], size=2)
    sides = (float(rng.integers(-3, 1)), float(rng.integers(1, 4)))
    columns = rng.choice([2, 3, 4], size=2, replace=False)
    indicator = Indicator(int(rng.integers(2)), int(rng.integers(2)), columns, entries, *sides, "c")
    open_box = Box(np.array([0.0, 0, *[-np.inf] * 3]), np.array([1.0, 1, *[np.inf] * 3]))
    host = replace(mip, lower=open_box.lower, upper=open_box.upper) if by_lp else mip
    for sign, room in written_room(host, indicator, open_box if by_lp else None):
        assert room >= largest_when_off(mip, indicator, sign)


def test_a_point_at_the_edge_of_the_check_is_not_cut_off():
    """x may pass its bound by 1e-6; a hundred times that is still within the row that is switched off."""
    mip = dt.Mip([0, 0], lower=0, upper=[1, 5], integer=[True, False])
    ((_, room),) = written_room(mip, Indicator(0, 1, [1], [100.0], -np.inf, 200.0, "c"))
    assert 500.0 + 1e-4 <= room <= 500.0 + 2e-4


def test_as_a_reformulation():
    """Columns are only appended: points are carried over by filling in zeros and cutting them off."""
    mip = dt.Mip(np.zeros(3), lower=[0, -np.inf, 0], upper=[1, np.inf, 9], integer=[True, False, False])
    problem = dt.Problem(mip)
    limited, wild = (Indicator(0, 1, [j], [1.0], -np.inf, 2.0, f"i{j}") for j in (2, 1))
    written = IndicatorRows((limited, wild)).apply(Reformulated.start(problem, propagate(mip.loosened())))
    assert written.original is problem and problem.mip is mip and not problem.blocks
    assert (written.problem.mip.n_rows, written.problem.mip.n_columns) == (1, 4)
    for on, x, holds in ((1, 2.0, True), (1, 2.5, False), (0, 2.5, True)):
        for point in ([on, x, 0.0], [on, 0.0, x]):
            lifted = written.lift(np.array(point, dtype=float))
            assert dt.check(written.problem, lifted).within() == holds
            assert written.restrict(lifted).tolist() == point
    assert IndicatorRows(()).apply(Reformulated.start(problem, propagate(mip))) is None


@pytest.mark.parametrize("active", [0, 1])
@pytest.mark.parametrize(("lower", "upper"), [(-np.inf, 2.0), (1.0, np.inf), (1.0, 2.0), (2.0, 2.0)])
def test_what_is_missing(active, lower, upper):
    block = IndicatorViolation(Indicator(0, active, [1, 2], [1.0, -2.0], lower, upper, "c"))
    rows = np.array([[on, x, y] for on in (0.0, 1.0) for x in (0.0, 4.0, 7.0) for y in (-1.0, 1.0, 3.0)])
    activity = rows[:, 1] - 2.0 * rows[:, 2]
    missing = np.maximum(np.maximum(lower - activity, activity - upper), 0.0)
    wanted = np.where(rows[:, 0] == active, missing, 0.0)
    assert block(torch.as_tensor(rows)).numpy()[:, 0].tolist() == wanted.tolist()


@pytest.mark.parametrize("seed", range(20))
def test_the_most_is_no_less_than_in_exact_arithmetic(seed):
    rng = np.random.default_rng(seed)
    n = 30
    scale = 10.0 ** rng.integers(-6, 7, size=n)
    box = Box(np.append(0.0, -scale * rng.random(n)), np.append(1.0, scale * rng.random(n)))
    mip = dt.Mip(np.zeros(n + 1), lower=box.lower, upper=box.upper, integer=[True] + [False] * n)
    entries = rng.normal(size=n)
    sides = OneSidedRows.of(mip, [Indicator(0, 1, range(1, n + 1), entries, -1.0, 1.0, "c")], box)
    for sign, most in zip((1.0, -1.0), sides.most(box), strict=True):
        exact = sum(
            Fraction(sign * c) * Fraction(float(box.upper[j + 1] if sign * c > 0 else box.lower[j + 1]))
            for j, c in enumerate(entries)
        )
        assert Fraction(float(most)) >= exact
        assert most == pytest.approx(float(exact), rel=1e-9, abs=1e-9 * float(np.max(scale)))


def test_a_binary_that_the_box_fixes():
    mip = dt.Mip([0.0, 0.0], lower=[0, -1], upper=1, integer=[True, False])
    indicator = Indicator(0, 1, [1], [1.0], -np.inf, 0.0, "c")
    low, high = np.array([0.0, -1.0]), np.array([1.0, 1.0])
    assert OneSidedRows.of(mip, [indicator], Box(np.array([1.0, -1.0]), high)).always.tolist() == [True]
    assert OneSidedRows.of(mip, [indicator], Box(low, np.array([0.0, 1.0]))).count == 0
    assert OneSidedRows.of(mip, [indicator], Box(low, high)).always.tolist() == [False]


def test_the_binary_in_its_own_row_is_switched_off():
    mip = dt.Mip([0.0, 0.0], lower=[0, -1], upper=1, integer=[True, False])
    box = Box(mip.lower, mip.upper)
    sides = OneSidedRows.of(mip, [Indicator(0, 1, [0, 1], [5.0, 1.0], -np.inf, 0.0, "c")], box)
    assert sides.most(box) == pytest.approx([1.0])  # not 6: b is 0
