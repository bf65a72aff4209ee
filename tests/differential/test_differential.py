"""Random small problems against their true optima.

Hard promises, on every instance: a returned point is feasible, nothing beats the optimum, no bound and
no status claims what is not true. How often the optimum is found is counted and printed; of the default
method it is demanded too.
"""

from __future__ import annotations

import pytest

from tests.conftest import FULL
from tests.differential.instances import make
from tests.differential.judging import Tally, judge

TOTAL = 1000 if FULL else 60
PARTS = 40 if FULL else 4


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(3600)
def test_against_the_truth(part, tallied):
    tally = Tally()
    for seed in range(part, TOTAL, PARTS):
        judge(make(seed), "dual-decomposition", tally, time_limit=20.0)
    tallied("dual-decomposition against the true optimum", tally.to_line())
    assert tally.faults == []


DEFAULT_TOTAL = 2400 if FULL else 60
"""Of these more than a thousand count: feasible, and not solved by a hundred random points."""


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(3600)
def test_the_default_method_finds_the_optimum(part, tallied):
    tally = Tally()
    for seed in range(part, DEFAULT_TOTAL, PARTS):
        judge(make(seed), "auto", tally, time_limit=20.0)
    tallied("auto against the true optimum", tally.to_line())
    assert tally.faults == []
    missed = tally.total("counted") - tally.total("optimum")
    assert missed <= max(1, 0.05 * tally.total("counted"))
