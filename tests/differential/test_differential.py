"""Random small problems against their true optima.

Hard promises, on every instance: a returned point is feasible, nothing beats the optimum, no bound and
no status claims what is not true. How often the optimum is found is counted and printed, not asserted.
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
