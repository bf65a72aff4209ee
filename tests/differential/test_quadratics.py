"""Random small quadratic programs, held against Gurobi: no wrong bound, status or point."""

import pytest

from tests.conftest import FULL
from tests.differential.quadratics import KINDS, environment, judged, make

SEEDS = range(100, 125) if FULL else range(100, 101)
CASES = [
    (kind, integers, network)
    for kind in KINDS
    for integers in (False, True)
    for network in ((False,) if kind == "free" else (False, True))
]


CASES = CASES if FULL else CASES[1::3]
SECONDS = 2.0 if FULL else 1.0


@pytest.fixture(scope="module")
def env():
    with environment() as made:
        yield made


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_claimed_holds(env, seed):
    proved, wrong = 0, []
    for kind, integers, network in CASES:
        result, faults = judged(make(env, kind, seed, integers=integers, network=network), SECONDS)
        proved += result.status in ("optimal", "infeasible")
        wrong += [f"{kind}, seed {seed}, integers {integers}, network {network}: {fault}" for fault in faults]
    assert not wrong
    assert proved >= len(CASES) // 2
