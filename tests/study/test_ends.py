"""How big-M ended: every run is counted, and only a real search or a real want of memory is a test of it."""

import pytest

from dovetail_study.statistics import End, done, end, put_to_the_test, searched, tally
from tests.study.made_up import row, scip


@pytest.mark.parametrize(
    ("how", "compared", "judged"),
    [
        ("proved", True, True),
        ("time", True, True),
        ("memory", False, True),
        ("writing", False, False),
        ("infeasible", False, False),
        ("refused", False, False),
    ],
)
def test_what_an_end_is_good_for(how, compared, judged):
    mine = scip("e1", how)
    assert (end(mine), searched(mine), put_to_the_test(mine)) == (End(how), compared, judged)


@pytest.mark.parametrize("said", [{}, {"end": None}, {"end": "something else"}])
def test_a_row_that_does_not_say_is_counted_as_such(said):
    old = row("e1", "big-m", **said)
    assert end(old) is End.UNKNOWN
    assert not put_to_the_test(old)
    assert tally([old]) == "1 not recorded"


@pytest.mark.parametrize(
    ("fields", "how"),
    [
        ({"scip": "optimal", "status": "feasible"}, End.CLAIMED),
        ({"scip": "optimal", "status": "optimal"}, End.PROVED),
        ({"scip": "userinterrupt", "status": "feasible"}, End.OTHER),
        ({}, End.OTHER),
    ],
)
def test_optimal_by_scips_word_is_done_and_not_proved(fields, how):
    mine = row("e5", "big-m", end="other", **fields)
    assert end(mine) is how
    assert done(mine) is searched(mine) is (how is not End.OTHER)
    assert not done(scip("e1", "time"))
