"""One live HiGHS object: limits that mean what they say, return codes that are looked at."""

import highspy
import numpy as np
import pytest
import scipy.sparse as sp

import dovetail as dt
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.mip.program import LinearProgram
from dovetail.run.budget import Budget, StopReason
from dovetail.run.engine import MipStatus


def hard_knapsack(n=70, m=40, seed=0, integer=True, **options):
    rng = np.random.default_rng(seed)
    A = sp.csr_array(rng.integers(1, 60, (m, n)).astype(float))
    program = LinearProgram(
        A, np.full(m, -np.inf), np.full(m, 12.0 * n), np.zeros(n), np.ones(n), np.full(n, integer)
    )
    live = LoadedHighs(program, **options)
    live.set_objective(-rng.uniform(10, 60, n), 0.0)
    return live


def test_a_limit_is_a_limit_for_each_solve():
    """HiGHS counts an LP's time from its object's birth and a MIP's from its start: both get their share."""
    live = hard_knapsack()
    for _ in range(3):
        status, x, bound = live.run(Budget(0.5), 1e-12)
        assert status is MipStatus.LIMIT
        assert x is not None
        assert np.isfinite(bound)
    lp = hard_knapsack(integer=False)
    for k in range(30):
        lp.set_objective(np.random.default_rng(k).normal(size=70), 0.0)
        assert lp.run(Budget(60.0), 0.0)[0] is MipStatus.OPTIMAL


def test_a_stop_request_interrupts_a_running_solve():
    live = hard_knapsack()
    budget = Budget(120.0)

    class Interrupts:
        def __init__(self):
            self.calls = 0

        def __call__(self, event):
            self.calls += 1
            budget.stop(StopReason.INTERRUPT)

    live._highs.cbMipInterrupt += Interrupts()
    status, _, _ = live.run(budget, 1e-12)
    assert status is MipStatus.LIMIT


def test_refusals_are_raised():
    live = hard_knapsack()
    with pytest.raises(dt.EngineError, match="bounds"):
        live.set_bounds(np.full(70, 2.0), np.full(70, np.nan))
    with pytest.raises(dt.EngineError, match="rows"):
        live.add_rows(sp.csr_array(np.ones((1, 70))), np.array([np.inf]), np.array([-np.inf]))


def test_rows_that_were_refused_do_not_spoil_the_next_ones():
    """min x under x >= 3, where x >= 2 could not be put in its place."""
    rows = sp.csr_array([[1.0]])
    no_limit, integer = np.full(1, np.inf), np.zeros(1, dtype=bool)
    live = LoadedHighs(LinearProgram(rows, np.ones(1), no_limit, np.zeros(1), np.full(1, 9.0), integer))
    live.set_objective(np.ones(1), 0.0)
    with pytest.raises(dt.EngineError, match="rows"):
        live.replace_rows(0, 1e20 * rows, np.full(1, 2.0), no_limit)
    live.replace_rows(0, rows, np.full(1, 3.0), no_limit)
    status, x, _ = live.run(Budget(20.0), 1e-6)
    assert status is MipStatus.OPTIMAL and x.tolist() == [3.0]


def test_a_status_that_is_no_answer_is_raised(monkeypatch):
    live = hard_knapsack(8, 4)
    monkeypatch.setattr(live._highs, "getModelStatus", lambda: highspy.HighsModelStatus.kSolveError)
    with pytest.raises(dt.EngineError, match="kSolveError"):
        live.run(Budget(5.0), 1e-6)


def test_an_lp_refused_from_the_last_basis_is_solved_from_scratch(monkeypatch):
    """HiGHS gives up where the basis of other costs has "excessive dual values"."""
    live, other = (hard_knapsack(integer=False) for _ in range(2))
    live.run(Budget(60.0), 0.0)
    costs, run, kept = np.random.default_rng(1).normal(size=70), live._run, []

    def refused_with_a_basis():
        kept.append(live._highs.getBasis().valid)
        return highspy.HighsStatus.kError if kept[-1] else run()

    monkeypatch.setattr(live, "_run", refused_with_a_basis)
    for one in (live, other):
        one.set_objective(costs, 0.0)
    status, x, bound = live.run(Budget(60.0), 0.0)
    assert kept == [True, False] and status is MipStatus.OPTIMAL and x is not None
    assert bound == pytest.approx(other.run(Budget(60.0), 0.0)[2])
    monkeypatch.setattr(live, "_run", lambda: highspy.HighsStatus.kError)
    with pytest.raises(dt.EngineError, match="refused the solve"):
        live.run(Budget(60.0), 0.0)


def test_threads_can_change_between_objects():
    """HiGHS fixes the thread count of the process with the first solve, unless it is told otherwise."""
    for threads in (1, 2, 1):
        assert hard_knapsack(10, 5, threads=threads).run(Budget(20.0), 1e-6)[0] is MipStatus.OPTIMAL


def test_free_columns_beside_fixed_binaries_do_not_crash():
    """What crashed the process through HiGHS's feasibility jump: presolve leaves only free columns."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        n = 8
        A = sp.csr_array(rng.normal(size=(25, n)) * (rng.random((25, n)) < 0.3))
        program = LinearProgram(
            A, np.full(25, -np.inf), np.abs(rng.normal(size=25)) + 5.0,
            np.repeat([0.0, -np.inf], 4), np.repeat([1.0, np.inf], 4), np.repeat([True, False], 4),
        )  # fmt: skip
        live = LoadedHighs(program)
        live.set_objective(np.concatenate([np.full(4, 300.0), 0.01 * rng.normal(size=4)]), 0.0)
        status, _, _ = live.run(Budget(20.0), 1e-6)
        assert status in (MipStatus.OPTIMAL, MipStatus.UNBOUNDED)
