"""The random problems once more, with costs many orders of magnitude apart: every combination is tried."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.conftest import FULL
from tests.differential.instances import KINDS, Instance, make
from tests.differential.judging import judge
from tests.differential.tally import Tally

TOTAL, PARTS = (1200, 48) if FULL else (8, 2)
WHOLE = tuple(KINDS.index(kind) for kind in ("binary", "integer"))
"""The kinds without continuous decisions: their truth is an enumeration, whatever the costs."""


def wild(number: int) -> Instance:
    instance = make(len(KINDS) * (number // 2) + WHOLE[number % 2])
    rng = np.random.default_rng(number)
    return replace(instance, cost=instance.cost * 10.0 ** rng.integers(-3, 9, instance.cost.size))


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(3600)
def test_nothing_false_is_said(part):
    tally = Tally()
    for number in range(part, TOTAL, PARTS):
        judge(wild(number), "auto", tally)
    assert tally.faults == []
