"""No bound is ever above a point that counts: random problems of all kinds, every line of every trace."""

from __future__ import annotations

import copy

import pytest

import dovetail as dt
from dovetail.methods.branching import Branching
from tests.conftest import FULL
from tests.differential.claims import Count, Heard, faults, judge
from tests.differential.proof_cases import make
from tests.differential.proof_points import good_points

PARTS = 40 if FULL else 4
SEEDS = tuple(range(2000)) if FULL else (0, 29, 2, 3)
"""Every domain at least once, and stages; `python -m benchmarks.bounds_volume` is the same at any volume."""
CERTIFYING = 5.0 if FULL else 0.3
SECONDS = 5.0 if FULL else 0.4


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(3600)
def test_weak_duality_on_every_line(part):
    count = Count()
    for seed in SEEDS[part::PARTS]:
        count.add(judge(make(seed), dt.Auto(effort=1), time_limit=SECONDS, certifying=CERTIFYING))
    assert count.wrong == []
    assert count.claims > 0


def test_points_are_what_the_check_accepts():
    for seed in range(8):
        case = make(seed)
        for point in good_points(case, 0)[:3]:
            assert dt.check(case.problem, point.x).within()
            worth = case.problem.mip.sign * case.problem.mip.objective(point.x)
            assert worth == pytest.approx(point.worth, abs=1e-9)


def heard_of(result, bound, status="feasible", line=None):
    result = copy.copy(result)
    object.__setattr__(result, "status", dt.Status(status))
    return Heard([bound], ["boxes"], [line] if line else [], result)


@pytest.fixture(scope="module")
def known():
    case = make(17)
    return case, good_points(case, 0), dt.solve(case.problem, dt.Auto(effort=1), time_limit=0.3, log=False)


def test_a_bound_a_hair_too_high_is_heard(known):
    case, points, result = known
    best = points[0].worth
    sign = case.problem.mip.sign
    assert faults(heard_of(result, best), points, sign) == []
    assert "raised" in faults(heard_of(result, best + 1e-5), points, sign)[0]


def test_a_line_of_the_trace_is_heard(known):
    case, points, result = known
    best, sign = points[0].worth, case.problem.mip.sign
    assert "trace" in faults(heard_of(result, best, line=(best + 1e-5, best + 1.0)), points, sign)[0]
    assert "beyond its own" in faults(heard_of(result, best, line=(best, best - 1e-3)), points, sign)[0]


def test_a_false_status_is_heard(known):
    case, points, result = known
    best, sign = points[0].worth, case.problem.mip.sign
    assert "infeasible" in faults(heard_of(result, best, "infeasible"), points, sign)[0]
    heard = heard_of(result, best, "optimal")
    object.__setattr__(heard.result, "objective", sign * (best + 1.0))
    assert "optimal" in faults(heard, points, sign, deaf=True)[0]


SEEN = [(1232, Branching())]
"""Cases in which a bound over signs was wrong once: a condition had a negative multiplier where moves pay."""


@pytest.mark.parametrize(("seed", "method"), SEEN)
def test_what_was_wrong_once(seed, method):
    count = judge(make(seed), method, time_limit=5.0, deaf_only=True)
    assert count.solves > 0
    assert count.wrong == []
