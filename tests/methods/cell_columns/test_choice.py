"""Prices of a choice of boxes: of scarce rows, of rows that are only filled, and when an engine fails."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import dovetail as dt
from dovetail.branching.confirmed import EngineSettings
from dovetail.core.errors import EngineError
from dovetail.methods.cell_columns import choice as module
from dovetail.methods.cell_columns.choice import BoxChoice
from dovetail.run.budget import Budget
from dovetail.run.engine import MipStatus

SETTINGS = EngineSettings(0, 1)


def choice_of(h):
    """Two components; each may gain 1 at two units of the first row, or at two of the second, or rest."""
    use = np.array([[-1.0, 2.0, 0.0], [-1.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
    host = dt.Mip(np.zeros(1), lower=0.0, upper=0.0)
    owner = np.repeat([0, 1], 3)
    return BoxChoice(
        host, np.array([0]), sp.csr_array((2, 1)), np.array(h), owner, np.concatenate([use, use])
    )


def test_scarce_rows_have_prices():
    found = choice_of([1.0, 1.0]).prices(Budget(60.0), SETTINGS)
    assert found.status is MipStatus.OPTIMAL
    assert found.prices == pytest.approx([0.5, 0.5])
    assert found.value == pytest.approx(-1.0)


def test_rows_with_room_have_prices_by_what_fills_them():
    """Four units of room in all, the first row the smaller one: what fills it counts for more."""
    choice = choice_of([3.0, 6.0])
    plain = choice.prices(Budget(60.0), SETTINGS)
    assert plain.prices == pytest.approx([0.0, 0.0])
    loads = choice.load_prices(plain.value + 1e-9, Budget(60.0), SETTINGS)
    assert loads[0] == 1.0 and np.all(loads > 0.0)
    # both ways to gain cost the same at these prices, and no more than they gain
    assert loads[1] == pytest.approx(loads[2])
    assert 2.0 * loads[1] <= 1.0 + 1e-6


def test_where_all_cost_the_same_the_cost_has_no_price_and_the_rows_have():
    """Neither may rest: four units in all, by either row."""
    choice = choice_of([2.0, 4.0])
    gaining = np.array([0, 1, 3, 4])
    choice = replace(choice, owner=choice.owner[gaining], use=choice.use[gaining])
    cost, *rows = choice.load_prices(-2.0 + 1e-9, Budget(60.0), SETTINGS)
    assert cost == 0.0
    assert rows[0] == pytest.approx(rows[1]) and rows[0] > 0.0


def test_an_engine_that_fails_has_no_prices(monkeypatch):
    class Failing:
        def __init__(self, *args, **options):
            raise EngineError("HiGHS refused the model.")

    monkeypatch.setattr(module, "LoadedHighs", Failing)
    assert choice_of([1.0, 1.0]).prices(Budget(60.0), SETTINGS) == (MipStatus.LIMIT, None, -np.inf)
