"""One case in one process: its row, whatever it raises."""

import pytest

from dovetail.sweeping.sweep import solved
from tests.sweeping.builds import nothing, pair, plant


def test_a_case_is_solved():
    row = solved("plant", plant, {"sense": "max"}, True)
    assert (row.status, row.objective, row.error) == ("optimal", 2.0, "")
    assert row.result.names == ("a", "b", "c", "d", "y")


@pytest.mark.parametrize(
    ("build", "case", "error"),
    [
        (plant, {"trouble": "raise"}, "build: ValueError: no such plant (builds.py, line "),
        (plant, {"trouble": "leave"}, "build: SystemExit: 4"),
        (nothing, {"a": 1}, "solve: "),
        (pair, {"a": 3}, "build: dovetail.core.errors.OptionError: build returned a tuple"),
        (pair, {"a": {"colour": 1}}, "solve: TypeError: solve() got an unexpected keyword argument 'colour'"),
        (pair, {"a": {"method": "guess"}}, "solve: dovetail.core.errors.OptionError: method 'guess'"),
    ],
)
def test_what_goes_wrong_is_in_the_row(build, case, error):
    row = solved("plant", build, case, True)
    assert row.error.startswith(error)
    assert row.status is None
    assert row.full is None
