"""Means that leave out what is missing, and verdicts that follow the numbers."""

import math

import pytest

from dovetail_study.experiment import Word, judged
from dovetail_study.statistics import average, exponent, geometric_mean, mean, share, text


def test_what_is_missing_is_left_out():
    rows = [{"a": 1.0}, {"a": None}, {"a": 3.0}, {}]
    assert average(rows, "a") == 2.0
    assert math.isnan(mean([]))
    assert math.isnan(share([], bool))
    assert geometric_mean([1.0, 100.0]) == pytest.approx(10.0)


def test_every_python_makes_the_same_mean():
    # added one after the other, as Python 3.11 adds, the first comes to 0.09999999999999999 and the second,
    # five runs' seconds, to 2.1849999999999996: another number in the table
    assert mean([0.1] * 10) == 0.1
    assert text(mean([1.9441, 2.276, 2.5567, 2.1626, 1.9856])) == "2.19"


def test_the_exponent_of_a_power_law():
    assert exponent([(x, 3.0 * x**0.7) for x in (1.0, 10.0, 55.0)]) == pytest.approx(0.7)
    assert math.isnan(exponent([(2.0, 1.0), (2.0, 3.0)]))


def test_verdicts():
    assert judged("c", "p", "o", holds=None).word is Word.UNTESTABLE
    assert judged("c", "p", "o", holds=True).word is Word.HOLDS
    assert judged("c", "p", "o", holds=False).word is Word.NOT
    assert judged("c", "p", "o", holds=False, in_part=True).word is Word.IN_PART
    assert judged("c", "p", "o", holds=False, in_part=True, open_end=True).word is Word.UNTESTABLE
    assert judged("c", "p", "o", holds=True, open_end=True).word is Word.HOLDS
    assert judged("c", "p", "o", holds=None).ours == "no rows for it"
    assert judged("c", "p", "o", holds=None, rows=[{}]).ours == "o"  # there are rows, they say nothing of it
    assert judged("c", "p", "o", holds=True, rows=[{"a": 1}]).rows == [{"a": 1}]
    assert str(judged("claim", "1", "2", holds=True)) == "claim: holds (paper 1; here 2)"
