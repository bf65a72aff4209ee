"""Prices of a choice of boxes: of scarce rows, and of rows that are only filled."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import dovetail as dt
from dovetail.decomposition.choice import Columns, SharedColumns
from dovetail.run.budget import Budget
from dovetail.run.engine import MipStatus


def choice_of(h):
    """Two components; each may gain 1 at two units of the first row, or at two of the second, or rest."""
    use = np.tile([[-1.0, 2.0, 0.0], [-1.0, 0.0, 2.0], [0.0, 0.0, 0.0]], (2, 1))
    nothing = np.zeros(1)
    shared = SharedColumns(nothing, sp.csr_array((2, 1)), nothing, nothing, nothing.astype(bool))
    scale = np.maximum(1.0, np.abs(h))
    return Columns(2, np.array(h), scale, shared, np.repeat([0, 1], 3), use[:, 0], use[:, 1:])


def solved(choice, level_at=None):
    status, found = choice.relaxed(Budget(60.0), level_at=level_at)
    return found, status


def test_scarce_rows_have_prices():
    found, status = solved(choice_of([1.0, 1.0]))
    assert status is MipStatus.OPTIMAL
    assert found.prices == pytest.approx([0.5, 0.5])
    assert found.value == pytest.approx(-1.0)


def test_rows_with_room_have_prices_by_what_fills_them():
    """Four units of room in all, the first row the smaller one: what fills it counts for more."""
    choice = choice_of([3.0, 6.0])
    plain, _ = solved(choice)
    assert plain.prices == pytest.approx([0.0, 0.0])
    found, _ = solved(choice, plain.value + 1e-9)
    loads = found.prices / found.on_cost
    assert np.all(loads > 0.0)
    # both ways to gain cost the same at these prices, and no more than they gain
    assert loads[0] == pytest.approx(loads[1])
    assert 2.0 * loads[0] <= 1.0 + 1e-6


def test_where_all_cost_the_same_the_cost_has_no_price_and_the_rows_have():
    """Neither may rest: four units in all, by either row."""
    choice = choice_of([2.0, 4.0])
    which = np.array([0, 1, 3, 4])
    parts = {"owner": choice.owner[which], "cost": choice.cost[which], "use": choice.use[which]}
    found, _ = solved(replace(choice, **parts), -2.0 + 1e-9)
    assert found.on_cost == pytest.approx(0.0, abs=1e-9)
    assert found.prices[0] == pytest.approx(found.prices[1]) and found.prices[0] > 0.0


def test_where_nothing_fits_it_says_so():
    found, status = solved(choice_of([-1.0, 1.0]))
    assert found is None and status is MipStatus.INFEASIBLE


def test_one_box_for_each_component():
    mip = choice_of([2.0, 2.0]).as_mip()
    answer = dt.solve(dt.Problem(mip), log=False)
    assert answer.objective == pytest.approx(-2.0)
