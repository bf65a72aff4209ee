"""Timers: they add up, survive errors, and a profile's parts make the whole."""

import pytest

from dovetail.run.work import Profile, Stopwatch


def test_measuring_adds_up_even_when_the_work_fails():
    stopwatch = Stopwatch()
    with pytest.raises(ValueError, match="trouble"), stopwatch.measure("engine"):
        raise ValueError("trouble")
    first = stopwatch.read("engine")
    with stopwatch.measure("engine"):
        pass
    assert stopwatch.read("engine") >= first >= 0.0
    assert stopwatch.read("never") == 0.0


def test_what_was_measured_under_two_names_is_counted_once():
    stopwatch = Stopwatch()
    stopwatch.totals["check"] = 5.0
    stopwatch.deduct("check", 2.0)
    assert stopwatch.read("check") == 3.0


def test_a_profile_adds_up_to_the_whole():
    stopwatch = Stopwatch()
    stopwatch.totals.update(engine=1.0, network=2.0, nn=5.0, check=0.5)
    profile = Profile.of(stopwatch, 10.0)
    assert profile == Profile(engine=1.0, network=2.0, subsolver=3.0, check=0.5, rest=3.5)
    assert sum(profile.shares().values()) == pytest.approx(1.0)
    assert set(Profile().shares().values()) == {0.0}
