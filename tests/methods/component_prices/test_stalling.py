"""Column generation stalls after as long without a gain as it took to the last one, and no sooner."""

import math

from dovetail.methods.component_prices.column_generation import GAINED, ROUNDS, Stalling


def rounds(stalling: Stalling, begin: float, count: int, value: float, objective: float) -> list[bool]:
    """One second each."""
    return [stalling.after(begin + k, value, objective) for k in range(count)]


def test_it_waits_as_long_as_it_took():
    stalling = Stalling(100.0)
    assert not any(rounds(stalling, 101.0, 20, -5.0, 3.0)[:ROUNDS])  # the gain came after one second
    stalling = Stalling(100.0)
    assert not stalling.after(140.0, -5.0, 3.0)
    waited = rounds(stalling, 141.0, 60, -5.0, 3.0)
    assert waited.index(True) == 39  # 40 s to the gain, 40 s without


def test_it_waits_for_some_rounds_however_early_the_gain():
    stalling = Stalling(0.0)
    stalling.after(0.1, -5.0, 3.0)
    assert rounds(stalling, 1.0, 20, -5.0, 3.0).index(True) == ROUNDS - 1


def test_better_points_and_cheaper_masters_are_gains():
    stalling, value = Stalling(0.0), -5.0
    for second in range(1, 40):
        assert not stalling.after(float(second), -5.0, float(second))
    stalling = Stalling(0.0)
    for second in range(1, 40):
        value *= 1.0 + 3.0 * GAINED
        assert not stalling.after(float(second), value, 3.0)


def test_without_a_point_or_a_master_it_goes_on():
    assert not any(rounds(Stalling(0.0), 1.0, 99, math.nan, math.nan))
