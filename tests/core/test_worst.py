"""The largest amount and its place, in one piece or in many."""

import numpy as np
import pytest

from dovetail.core.batch_rounding import NOTHING, Worst, largest, worst_in_pieces, worst_of
from dovetail.core.pieces import NUMBERS


@pytest.mark.parametrize("numbers", [NUMBERS, 4])
def test_places_are_counted_through(numbers, monkeypatch):
    monkeypatch.setattr("dovetail.core.pieces.NUMBERS", numbers)
    amounts = np.random.default_rng(0).uniform(-1.0, 1.0, (50, 3))
    place = int(np.argmax(amounts))
    expected = Worst(float(amounts.flat[place]), f"place {place}")
    assert worst_in_pieces(lambda some: amounts[some], (50, 3), lambda k: f"place {k}") == expected
    assert worst_of(amounts.ravel(), lambda k: f"place {k}") == expected
    amounts[41, 1] = np.nan
    assert worst_of(amounts.ravel(), str) == Worst(np.inf, str(41 * 3 + 1))


def test_less_than_nothing_is_nothing():
    assert worst_of(np.array([-1.0, 0.0]), str) == NOTHING
    assert worst_of(np.empty(0), str) == NOTHING


def test_what_could_not_be_measured_comes_first():
    unknown = Worst(float("nan"), "unknown")
    assert largest([Worst(1.0, "one"), unknown]) is unknown
    assert largest([Worst(1.0, "one"), Worst(2.0, "two")]).name == "two"
    assert largest([]) == NOTHING
