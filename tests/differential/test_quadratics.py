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


FEW = [
    ("convex", True, True),
    ("products", True, False),
    ("mixed", False, True),
    ("rows", False, False),
    ("free", True, False),
]
"""Those that are proved in tenths of a second."""
SECONDS = 10.0 if FULL else 60.0


@pytest.fixture(scope="module")
def env():
    with environment() as made:
        yield made


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_claimed_holds(env, seed):
    proved, wrong = 0, []
    cases = CASES if FULL else FEW
    for kind, integers, network in cases:
        result, faults = judged(make(env, kind, seed, integers=integers, network=network), SECONDS)
        proved += result.status in ("optimal", "infeasible")
        wrong += [f"{kind}, seed {seed}, integers {integers}, network {network}: {fault}" for fault in faults]
    assert not wrong
    assert proved >= len(cases) // 2
