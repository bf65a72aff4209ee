"""The method against optima by enumeration and a MIP of scipy, and against the methods it hands on to."""

import itertools
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import LinearConstraint, milp

import dovetail as dt
from dovetail.decomposition import TemplatePricing
from dovetail.decomposition.networks import TemplateNetworks
from dovetail.methods.component_prices.prices import BlockPrices
from tests.conftest import sample
from tests.structure.test_templates import shuffled, treated

from .families import blends, offers, sales


def optimum(problem: dt.Problem, n: int) -> float:
    """Of `offers`: all points of every block, then the best choice of one each."""
    points = np.array(list(itertools.product(range(4), range(2))), dtype=float)
    columns = np.arange(4 * n).reshape(n, 4)
    mip, block = problem.mip, problem.blocks[0]
    feature = mip.lower[columns[:, 0]]
    rows = np.concatenate([np.repeat(feature, 8)[:, None], np.tile(points, (n, 1))], axis=1)
    worth = np.repeat(mip.cost[columns[:, 3]], 8) * block.predictor.predict(rows).ravel()
    use = np.tile(points @ [0.25, 1.0], n)
    answer = milp(
        -worth,
        integrality=1,
        bounds=(0, 1),
        constraints=[
            LinearConstraint(sp.kron(sp.eye_array(n), np.ones((1, 8))), 1, 1),
            LinearConstraint(use[None], mip.row_lower, mip.row_upper),
        ],
        options={"mip_rel_gap": 1e-6},
    )
    return -answer.fun


@pytest.mark.parametrize("sides", [(-np.inf, 0.3), (0.9, np.inf), (0.4, 0.4)])
@pytest.mark.parametrize("seed", sample([0, 1]))
def test_whole_numbers_against_enumeration(seed, sides):
    """Upper and lower limits and equations: within a thousandth of the optimum, and never beyond it."""
    n = 80
    problem = offers(n, seed, sides=sides)
    result = dt.solve(problem, TemplatePricing(), log=False)
    best = optimum(problem, n)
    assert result.x is not None
    assert dt.check(problem, result.x).within()
    assert result.objective <= best + 1e-6
    assert result.objective >= best - 1e-3 * abs(best) - 0.05


@pytest.mark.parametrize(
    "problem",
    sample([offers(70, continuous=True), shuffled(treated(80), 3), blends(60), sales(60), treated(80)], 2),
)
def test_no_worse_than_what_it_stands_in_for(problem):
    """A second or two against ten of the other phases: not worse by more than a tenth."""
    mine = dt.solve(problem, TemplatePricing(), log=False)
    other = dt.solve(problem, dt.Auto(block_prices=False, exact=False, effort=1), log=False)
    assert mine.x is not None
    assert dt.check(problem, mine.x).within()
    assert mine.objective >= other.objective - 0.1 * abs(other.objective)


@cache
def short_of_budget() -> tuple[dt.Problem, dt.Result]:
    """A problem, and what is found of it without an early point."""
    problem = treated(60, budget=0.02)
    return problem, dt.solve(problem, TemplatePricing(rounds=3), log=False)


def test_an_early_point_leaves_no_trace(monkeypatch):
    """When one is made depends on the clock, so that nothing else may depend on it."""
    problem, without = short_of_budget()
    monkeypatch.setattr("dovetail.decomposition.method.QUICK", 0.0)
    early = dt.solve(problem, TemplatePricing(rounds=3), log=False)
    assert np.array_equal(early.x, without.x)
    assert early.message == without.message


def test_a_search_with_few_digits_ends_with_all(monkeypatch):
    """As wide networks are priced on a GPU: no column counts that does not hold in float32."""
    problem, fine = short_of_budget()
    monkeypatch.setattr(TemplateNetworks, "gains_by_rough", True)
    rough = dt.solve(problem, TemplatePricing(rounds=3), log=False)
    assert dt.check(problem, rough.x).within()
    assert rough.objective >= 0.95 * fine.objective


def test_other_problems_are_left_alone():
    """A column of nobody's that is free."""
    n = 60
    mip = offers(n).mip
    shared = dt.Mip(
        np.append(mip.cost, -1.0),
        sp.hstack([mip.A, sp.csr_array([[-1.0]])]),
        mip.row_lower,
        mip.row_upper,
        np.append(mip.lower, 0.0),
        np.append(mip.upper, 5.0),
        np.append(mip.integer, False),
        sense="max",
    )
    problem = dt.Problem(shared)
    columns = np.arange(4 * n).reshape(n, 4)
    problem.add_predictor(offers(n).blocks[0].predictor, columns[:, :3], columns[:, 3:])
    assert dt.solve(problem, TemplatePricing(), log=False).stop_reason == "stalled"


def test_auto_runs_it_among_other_parts():
    result = dt.solve(treated(60), log=False)
    assert "template pricing: 60 blocks" in result.message
    assert dt.check(treated(60), result.x).within()


def test_its_prices_are_proved():
    """The bound at them holds for the point that was found, and is far better than the host's own."""
    problem = treated(60)
    found = dt.solve(problem, TemplatePricing(), log=False)

    proved = dt.solve(problem, BlockPrices(), log=False)
    assert proved.objective <= proved.bound
    assert proved.bound <= 1.1 * found.objective
    assert found.bound == pytest.approx(60.0, abs=1e-3)
