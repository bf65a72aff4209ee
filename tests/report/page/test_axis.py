"""Axes: round numbers, at most so many, in the right places, whatever the range."""

import math

import pytest

from dovetail.report.page.course import Axis, covering


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 10), (-603.7, -471.7), (0, 1e-9), (-1e12, 1e12), (17, 17), (0.001, 0.0011), (1e6, 1e6 + 3)],
)
def test_ticks_lie_on_the_axis(low, high):
    axis = Axis(low, high, 50.0, 850.0)
    ticks = axis.ticks(6)
    assert 1 <= len(ticks) <= 8
    assert all(50.0 <= place <= 850.0 for place, _ in ticks)
    assert len({text for _, text in ticks}) == len(ticks)


def test_logarithms():
    axis = Axis(1e-7, 1e2, 200.0, 10.0, log=True)
    assert axis.place(1e2) == 10.0 and axis.place(1e-7) == 200.0
    assert axis.place(1e-20) == 200.0  # below the axis
    assert [text for _, text in axis.ticks(5)] == ["1e−7", "1e−5", "0.001", "0.1", "10"]


def test_whole_numbers():
    texts = [text for _, text in Axis(1, 22, 0.0, 100.0, whole=True).ticks(9)]
    assert all(float(text).is_integer() for text in texts)
    assert len(Axis(1, 3, 0.0, 100.0, whole=True).ticks(9)) == 3


def test_room_around_numbers():
    low, high = covering([1.0, 3.0])
    assert low < 1.0 and high > 3.0 and high - low < 2.5
    low, high = covering([5.0])
    assert low < 5.0 < high
    assert math.isfinite(covering([0.0])[0])
