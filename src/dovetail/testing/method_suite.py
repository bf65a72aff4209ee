"""The tests that every method must pass: the promises of `solve`."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.mip import Mip
from dovetail.core.problem import Problem
from dovetail.run.context import Method
from dovetail.run.monitor import Event
from dovetail.run.result import Result
from dovetail.testing.problems import bowl, busy, knapsack, linear_net, random_mlp

PAUSE = 0.05
"""Seconds between an iteration and the signal, which arrives during a later iteration."""
SAMPLES = 10
"""Number of samples of the problem in which a method is stopped: no method solves it within three
iterations."""
OPTIMA: list[tuple[Callable[[], Problem], float | None]] = [
    (knapsack, -4.0),  # by enumeration of its sixteen choices
    (lambda: knapsack("max"), 2.0),
    (bowl, 0.28125),  # in closed form
    (lambda: busy(3), None),
]
"""Problems with the optimum, where it is known."""


class MethodSuite:
    """Small problems with known answers, through the public entrance.

    Derive a class and set the method. If the method takes minutes, or ends by itself within a second, also
    set versions with other options::

        from dovetail.testing import MethodSuite

        class TestMyMethod(MethodSuite):
            method = MyMethod()
            brief = MyMethod(iterations=10)
            endless = MyMethod(iterations=10**9)
    """

    method: Method
    """The tested method with its default options."""
    brief: ClassVar[Method | None] = None
    """The same method with less patience: its promises do not depend on the length of the search."""
    endless: ClassVar[Method | None] = None
    """The same method with options under which it ends only on request."""
    takes_any_predictor: bool = True
    """False if the method needs known layers: it must then refuse other predictors with an
    `UnsupportedError`."""
    meets_easy_bounds: bool = True
    """False for a local search that may end short of an optimum which a bound would have proved."""

    def solve_briefly(self, problem: Problem, **options: object) -> Result:
        """A solve with less patience and no log."""
        result: Result = dt.solve(problem, self.brief or self.method, log=False, **options)  # type: ignore[arg-type]
        return result

    @pytest.mark.parametrize(("problem", "optimum"), OPTIMA, ids=["min", "max", "convex", "busy"])
    def test_points_are_verified_and_claims_are_modest(
        self, problem: Callable[[], Problem], optimum: float | None
    ) -> None:
        """A point is feasible and its objective true; a bound is one; optimal needs a proof."""
        posed = problem()
        if not self.takes_any_predictor and problem is bowl:
            with pytest.raises(dt.UnsupportedError):
                dt.solve(posed, self.method, log=False)
            return
        result = self.solve_briefly(posed)
        assert result.x is not None
        assert result.objective == posed.mip.objective(result.x)
        assert dt.check(posed, result.x).within()
        sign, best = posed.mip.sign, result.objective if optimum is None else optimum
        assert sign * result.objective >= sign * best - 1e-6
        if result.bound is not None:
            assert sign * result.bound <= sign * best + 1e-9
        if result.status == "optimal":
            assert result.bound_kind in ("proven", "engine")
            assert result.bound is not None
            assert result.allowed_gap is not None
            assert abs(result.bound - result.objective) <= (1.0 + 1e-9) * result.allowed_gap
        assert result.method == self.method.name

    def test_solved_twice_it_has_the_same_iterates_and_is_left_as_it_was(self) -> None:
        """All random numbers come from the seed, and the user's problem is not changed."""
        problem = busy(3)
        before = (problem.mip.cost.copy(), problem.mip.A.toarray(), problem.mip.lower.copy(), problem.blocks)

        def run() -> tuple[str, bytes]:
            result = self.solve_briefly(problem, seed=3, time_limit=600.0)
            assert result.x is not None
            # rows of a proof come when some time has passed: they are no iterates
            iterates = [row for row in result.trace if row.residuals or not np.isnan(row.objective)]
            rows = [(row.objective, row.primal, row.lagrangian) for row in iterates]
            return repr(rows), result.x.tobytes()  # as text: NaN is not equal to itself

        assert run() == run()
        assert np.array_equal(problem.mip.cost, before[0])
        assert np.array_equal(problem.mip.A.toarray(), before[1])
        assert np.array_equal(problem.mip.lower, before[2])
        assert problem.blocks is before[3]

    def test_a_callback_sees_and_stops(self) -> None:
        """Every iteration is reported, and the first word to stop is the last iteration."""
        seen: list[int] = []

        def watch(event: Event) -> None:
            seen.append(event.row.iteration)
            if event.x is not None:
                event.x[:] = np.nan  # a change of this copy must have no effect
            if len(seen) == 3:
                event.stop()

        problem = busy(SAMPLES)
        result = dt.solve(problem, self.method, callback=watch, log=False)
        assert seen == [1, 2, 3]
        assert result.stop_reason == "callback"
        assert result.iterations == 3
        assert result.x is not None
        assert dt.check(problem, result.x).within()

    def test_an_exception_in_the_callback_comes_out_with_the_best_point(self) -> None:
        """The user's own error is raised, and the best solution is not lost."""

        def fail(event: Event) -> None:
            raise RuntimeError("no more")

        with pytest.raises(RuntimeError, match="no more") as caught:
            dt.solve(busy(), self.method, callback=fail, log=False)
        assert caught.value.result.x is not None  # type: ignore[attr-defined]
        assert any("dovetail.solve" in note for note in caught.value.__notes__)

    @pytest.mark.parametrize("limit", [0.0, 0.001, 0.2])
    def test_a_time_limit_ends_it_with_the_best_point_so_far(self, limit: float) -> None:
        """Also when there is hardly any time, or none."""
        result = dt.solve(busy(200), self.endless or self.method, time_limit=limit, log=False)
        assert result.stop_reason == "time"
        assert result.status in ("feasible", "no_solution")

    def test_no_feasible_point_is_no_solution_with_the_nearest_miss(self) -> None:
        """Infeasible is said only by a method that proves it."""
        mip = Mip(
            cost=[1.0, 1.0, 0.0], lower=[-1.0, -1.0, 100.0], upper=[1.0, 1.0, 200.0], names=["a", "b", "y"]
        )
        problem = Problem(mip)
        problem.add_predictor(random_mlp(2, seed=3), ["a", "b"], ["y"])
        result = self.solve_briefly(problem, time_limit=20.0)  # a candidate comes in the first tenth of one
        assert result.status in ("no_solution", "infeasible")
        assert result.x is None
        assert result.objective is None
        assert result.status == "infeasible" or "violates the bounds of y by" in result.message

    def test_infeasible_with_the_hosts_proof_only(self) -> None:
        """Rows that contradict each other without any predictor."""
        mip = Mip(
            cost=[1.0, 1.0], A=[[1.0, 0.0]], row_lower=[5.0], row_upper=[6.0],
            lower=[0.0, -9.0], upper=[1.0, 9.0],
        )  # fmt: skip
        problem = Problem(mip)
        problem.add_predictor(linear_net([1.0]), [0], [1])
        result = dt.solve(problem, self.method, log=False)
        assert result.status == "infeasible"
        assert result.stop_reason == "proved"
        assert result.x is None

    def test_unbounded_with_a_feasible_point_and_a_ray(self) -> None:
        """A column that no predictor holds back."""
        problem = Problem(Mip(cost=[0.0, 1.0, -1.0], lower=[0.0, -9.0, 0.0], upper=[1.0, 9.0, np.inf]))
        problem.add_predictor(linear_net([1.0]), [0], [1])
        result = dt.solve(problem, self.method, log=False)
        assert result.status == "unbounded"
        assert result.objective is None
        assert result.x is not None
        assert dt.check(problem, result.x).within()

    def test_optimal_where_the_hosts_bound_is_met(self) -> None:
        """All classes can be 1, and the bound of the host equals their number."""
        problem = Problem(
            Mip(cost=[0.0, 0.0, 1.0, 1.0], lower=[-1.0, -1.0, 0.0, 0.0], upper=1.0, sense="max")
        )
        problem.add_predictor(linear_net([1.0], -0.5), [[0], [1]], [[2], [3]], output_type="classification")
        result = dt.solve(problem, self.method, log=False)
        assert result.bound == pytest.approx(2.0, abs=1e-9)  # rounded to its disadvantage
        assert (result.status == "optimal") == (result.objective == 2.0)
        assert result.objective == 2.0 or not self.meets_easy_bounds

    def test_a_good_start_is_never_lost(self) -> None:
        """Whatever is found later, the user's own point counts."""
        best = np.array([1.0, 0.0, 0.0, 1.0, -5.0])
        assert self.solve_briefly(knapsack(), start=best).objective == -4.0

    def test_free_outputs_no_rows_and_no_blocks_are_legal(self) -> None:
        """Degenerate problems have answers too."""
        free = Problem(Mip(cost=[0.0, 1.0], lower=[-1.0, -np.inf], upper=[1.0, np.inf]))
        free.add_predictor(linear_net([2.0], 1.0), [0], [1])
        assert dt.solve(free, self.method, log=False).objective == pytest.approx(-1.0, abs=1e-3)
        bare = Problem(Mip(cost=[1.0, -1.0], lower=0.0, upper=3.0, integer=True))
        result = dt.solve(bare, self.method, log=False)
        assert result.status == "optimal"
        assert result.objective == -3.0

    def test_ctrl_c_returns_the_best_point(self) -> None:
        """A real signal from another thread, while the solve runs and outside the callback."""

        finger = threading.Timer(PAUSE, os.kill, (os.getpid(), signal.SIGINT))

        def press(event: Event) -> None:
            if event.row.iteration == 2:
                finger.start()

        problem = busy(SAMPLES, budget=-1.2 * SAMPLES)
        method, before = self.endless or self.method, signal.getsignal(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore Ctrl-C
        try:
            result = dt.solve(problem, method, time_limit=120.0, callback=press, log=False)
        except KeyboardInterrupt:
            pytest.fail("Ctrl-C came out of the solve")
        finally:
            finger.cancel()  # only this process is interrupted
            signal.signal(signal.SIGINT, before)
        assert result.stop_reason == "interrupt"
        assert result.x is not None
        assert dt.check(problem, result.x).within()

    def test_it_runs_outside_the_main_thread(self) -> None:
        """Signals can be caught in the main thread only; a solve in another thread ignores them."""
        results: list[Result] = []
        worker = threading.Thread(target=lambda: results.append(self.solve_briefly(knapsack())))
        worker.start()
        worker.join()
        assert results[0].x is not None
