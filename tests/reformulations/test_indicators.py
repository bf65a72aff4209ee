"""Indicators as rows: the same points are feasible, and what has no finite M is named."""

from itertools import product

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.indicator import Indicator
from dovetail.reformulations.indicators import LARGEST_M, with_indicators
from tests.conftest import FULL

SEEDS = range(400 if FULL else 40)


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


def test_bounds_that_are_as_good_as_none():
    mip = dt.Mip([0, 0], lower=[0, -10 * LARGEST_M], upper=[1, 10 * LARGEST_M], integer=[True, False])
    far = Indicator(0, 1, [1], [1.0], -np.inf, 0.0, "c")
    assert with_indicators(mip, [far])[1] == (far,)


@pytest.mark.parametrize(("upper", "integer", "words"), [(2, True, "integer"), (1, False, "continuous")])
def test_only_a_binary_can_switch(upper, integer, words):
    mip = dt.Mip([0, 0], lower=0, upper=[upper, 5], integer=[integer, False], names=["b", "x"])
    with pytest.raises(dt.ModelError, match=f"constraint c: b is {words}"):
        with_indicators(mip, [Indicator(0, 1, [1], [1.0], -np.inf, 0.0, "c")])


@pytest.mark.parametrize(("active", "upper"), [(2, 0.0), (1, np.nan), (1, -np.inf)])
def test_refuses_nonsense(active, upper):
    mip = dt.Mip([0, 0], lower=0, upper=[1, 5], integer=[True, False])
    with pytest.raises(dt.ModelError, match="constraint c"):
        with_indicators(mip, [Indicator(0, active, [1], [1.0], -np.inf, upper, "c")])


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


def test_ten_thousand():
    rng = np.random.default_rng(0)
    count = 10_000
    mip = dt.Mip(
        np.zeros(2 * count),
        lower=0,
        upper=[1] * count + [7] * count,
        integer=[True] * count + [False] * count,
    )
    columns = rng.integers(count, 2 * count, size=(count, 3))
    rows, _ = with_indicators(
        mip, [Indicator(k, k % 2, columns[k], [1, 2, 3], 3, 3, f"i{k}") for k in range(count)]
    )
    assert rows.n_rows == 2 * count
