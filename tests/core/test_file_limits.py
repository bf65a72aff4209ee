"""Limits on reading: what was not said is the reader's own, and the limit that was met is named."""

import pytest

import dovetail as dt
from dovetail.core.files import Meter

USUAL = dt.FileLimits(bytes=100, elements=10, seconds=60.0)


def meter(**changes):
    limits = dt.FileLimits(**changes).before(USUAL)
    return Meter("plan.lp", limits, "read", dt.ModelError)


def test_what_is_not_said_is_usual():
    assert dt.FileLimits(bytes=5).before(USUAL) == dt.FileLimits(bytes=5, elements=10, seconds=60.0)


def test_reading_up_to_the_limit_is_allowed_and_one_more_is_not():
    reading = meter()
    reading.add_bytes(60, "it has")
    reading.add_bytes(40, "it has")
    assert not reading.met
    with pytest.raises(dt.ModelError, match=r"plan\.lp: it has 101 bytes.*FileLimits\(bytes="):
        reading.add_bytes(1, "it has")
    assert reading.met
    with pytest.raises(dt.ModelError, match="elements"):
        meter(elements=3).add_elements(4, "it names")


def test_time_that_is_up_and_time_that_would_be():
    reading = meter(seconds=1000.0)
    reading.require_time()
    with pytest.raises(dt.ModelError, match="seconds"):
        reading.require_time(2000.0)
    assert meter(seconds=float("inf")).left == float("inf")


@pytest.mark.parametrize("wrong", [{"bytes": 0}, {"elements": 1.5}, {"seconds": -1.0}, {"seconds": "1"}])
def test_limits_that_are_none(wrong):
    with pytest.raises(dt.OptionError, match="FileLimits"):
        dt.FileLimits(**wrong)
