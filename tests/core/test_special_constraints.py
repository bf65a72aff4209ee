"""Special constraints as rows: what they say of whole points is what they are for.

An indicator that means nothing cannot be made.
"""

import itertools

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.special_constraints import Indicator, SpecialConstraints


def allowed(special, own):
    """The choices of the first `own` columns, all binary, that some choice of the others completes."""
    mip = special.program()
    ranges = [range(int(mip.upper[j]) + 1) for j in range(mip.n_columns)]
    found = set()
    for point in itertools.product(*ranges):
        x = np.array(point, dtype=float)
        if np.all(mip.A @ x >= mip.row_lower - 1e-9) and np.all(mip.A @ x <= mip.row_upper + 1e-9):
            found.add(point[:own])
    return found


def binaries(count):
    return SpecialConstraints(dt.Mip(np.zeros(count), upper=1.0, integer=True))


def choices(count, holds):
    return {point for point in itertools.product((0, 1), repeat=count) if holds(point)}


def test_logic():
    for sign, rule in ((1.0, all), (-1.0, any)):
        special = binaries(4)
        special.logic("rule", 0, [1, 2, 3], sign)
        assert allowed(special, 4) == choices(4, lambda p, rule=rule: bool(p[0]) == rule(p[1:]))


def test_ordered_sets():
    for kind, apart in ((1, 0), (2, 1)):
        special = binaries(4)
        special.ordered("set", kind, [0, 1, 2, 3])
        used = {tuple(np.flatnonzero(point)) for point in allowed(special, 4)}
        assert all(len(places) <= kind and np.ptp(places or (0,)) <= apart for places in used)
        assert len(used) == (5 if kind == 1 else 8)
    with pytest.raises(dt.UnsupportedError, match="types 1 and 2"):
        binaries(4).ordered("set", 3, [0, 1])


@pytest.mark.parametrize("odd", [True, False])
def test_parity(odd):
    special = binaries(3)
    special.parity("rule", [0, 1, 2], odd)
    assert allowed(special, 3) == choices(3, lambda p: sum(p) % 2 == odd)


def test_binaries_of_ordered_sets_are_their_own_switches():
    special = binaries(4)
    special.at_most("rule", [0, 1, 2, 3], 2)
    assert special.program().n_columns == 4 and not special.indicators
    assert allowed(special, 4) == choices(4, lambda p: sum(p) <= 2)
    special = binaries(4)
    special.neighbours("rule", [2, 0, 1, 3])
    near = {(0, 2), (0, 1), (1, 3)}
    for point in allowed(special, 4):
        used = tuple(np.flatnonzero(point).tolist())
        assert len(used) < 2 or used in near
    assert len(allowed(special, 4)) == 1 + 4 + 3


def test_other_columns_get_switches_of_their_own():
    special = SpecialConstraints(dt.Mip([0.0, 0.0], lower=-1.0, upper=5.0, names=["a", "b"]))
    special.at_most("few", [0, 1], 1)
    mip = special.program()
    assert mip.n_columns == 4 and mip.integer.tolist() == [False, False, True, True]
    assert [(one.binary, one.active, list(one.columns)) for one in special.indicators] == [
        (2, 0, [0]),
        (3, 0, [1]),
    ]
    assert mip.row_names == ("few",) and mip.names[:2] == ("a", "b")


def test_piecewise_functions_need_a_range():
    special = SpecialConstraints(dt.Mip([0.0, 0.0], upper=[np.inf, 3.0], names=["far", "y"]))
    with pytest.raises(dt.UnsupportedError, match="curve is piecewise linear in far.*finite bounds"):
        special.piecewise("curve", 0, 1, np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    with pytest.raises(dt.UnsupportedError, match="jump"):
        special.piecewise("curve", 1, 0, np.array([0.0, 1.0, 1.0]), np.zeros(3))


def test_nothing_special_is_the_program_itself():
    special = binaries(2)
    assert special.program() is special.mip


@pytest.mark.parametrize(
    ("active", "lower", "upper"),
    [(2, 0.0, 1.0), (1, -np.inf, np.nan), (1, np.nan, 0.0), (1, -np.inf, -np.inf), (0, np.inf, np.inf)],
)
def test_refuses_nonsense(active, lower, upper):
    with pytest.raises(dt.ModelError, match="constraint c"):
        Indicator(0, active, [1], [1.0], lower, upper, "c")


@pytest.mark.parametrize("active", [0, 1, True, False])
def test_one_side_or_none_is_enough(active):
    assert Indicator(0, active, [1], [1.0], -np.inf, np.inf, "c").active == active
