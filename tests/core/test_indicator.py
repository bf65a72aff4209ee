"""Indicators as they are handed over: plain facts of a row and the binary that switches it on."""

from dataclasses import FrozenInstanceError

import pytest

from dovetail.core.indicator import Indicator


def test_it_cannot_be_changed_behind_a_reader_s_back():
    indicator = Indicator(0, 1, [1, 2], [1.0, -1.0], float("-inf"), 3.0, "cap")
    assert (indicator.binary, indicator.active, indicator.upper) == (0, 1, 3.0)
    with pytest.raises(FrozenInstanceError):
        indicator.upper = 4.0
