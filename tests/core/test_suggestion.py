"""What somebody may have meant."""

import doctest

import pytest

from dovetail.core import suggestion
from dovetail.core.suggestion import did_you_mean


def test_the_examples():
    assert doctest.testmod(suggestion).failed == 0


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("tim_limit", "time_limit"),
        ("TIME_LIMIT", "time_limit"),
        ("seeds", "seed"),
    ],
)
def test_slips_are_recognised(word, meant):
    assert did_you_mean(word, ["gap", "time_limit", "seed"]) == f" (did you mean {meant!r}?)"


def test_among_very_many_names_those_that_begin_or_end_alike():
    names = [f"flow[{i},{j}]" for i in range(300) for j in range(100)] + ["cement"]
    assert did_you_mean("cemnt", names) == " (did you mean 'cement'?)"
    assert did_you_mean("", names) == ""
