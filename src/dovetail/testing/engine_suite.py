"""What every MIP engine has to pass."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.mip import Mip
from dovetail.run.budget import Budget, StopReason
from dovetail.run.engine import MipEngine, MipSession, MipStatus, Quadratic

AMPLE_SECONDS = 60.0
"""Seconds for one small program: an engine that needs them is stuck."""


KINDS = ("continuous", "binary", "integer", "mixed", "wide")
"""What the columns are; `wide` has integers between -200 and 200 beside continuous columns."""

NEAR = 9
"""Wide integers are enumerated between -9 and 9: the objectives' weights keep every optimum inside."""


class EngineSuite:
    """The same programs for every engine, against optima found by enumeration.

    Derive a class and set the engine; if the engine does not accept every kind of column, set `takes` to the
    accepted kinds: continuous, binary, integer, mixed and wide (integers with many values). It must then
    refuse the others, with a reason. Every engine takes continuous programs, and weights on their columns,
    because the MIP step needs them. `instances` is the number of programs of each kind::

        from dovetail.testing import EngineSuite

        class TestMyLpEngine(EngineSuite):
            engine = MyLpEngine()
            takes = ("continuous",)
    """

    engine: MipEngine
    """What is tested."""
    takes: tuple[str, ...] = KINDS
    """The kinds of programs it is for: continuous, binary, integer, mixed, wide."""
    instances: int = 4
    """Programs of each kind; three objectives each."""

    def session(self, mip: Mip, columns: list[int]) -> MipSession:
        """The engine with a loaded program, which it must accept."""
        assert "continuous" in self.takes, "every engine takes continuous programs, with weights"
        where = np.array(columns, dtype=np.int64)
        reason = self.engine.refuses(mip, where)
        assert reason is None, f"it refuses a program that every engine has to take: {reason}"
        return self.engine.load(mip, where)

    @pytest.mark.parametrize("kind", KINDS)
    def test_finds_the_optimum_again_and_again(self, kind: str) -> None:
        """One session, objectives that change: every answer is the optimum, and its bound is one."""
        rng = np.random.default_rng(KINDS.index(kind))
        # wide programs take long to enumerate
        for _ in range(max(1, self.instances // 4) if kind == "wide" else self.instances):
            mip, columns = program(kind, rng)
            if kind not in self.takes:
                assert self.engine.refuses(mip, columns), f"it takes {kind} programs, and `takes` says not"
                continue
            session, start = self.session(mip, columns.tolist()), None
            for _ in range(3):
                goal = objective(mip, columns, rng)
                start = self._optimum(session, mip, goal, start)

    @staticmethod
    def _optimum(session: MipSession, mip: Mip, goal: Quadratic, start: FloatArray | None) -> FloatArray:
        answer = session.solve(goal, budget=Budget(AMPLE_SECONDS), gap=1e-7, start=start)
        truth = true_minimum(mip, goal)
        assert answer.status is MipStatus.OPTIMAL
        assert answer.x is not None
        assert answer.value == pytest.approx(truth, rel=1e-5, abs=1e-5)
        assert answer.value == goal.value(answer.x)
        assert answer.bound <= truth + 1e-5 * max(1.0, abs(truth))
        assert np.all(answer.x[mip.integer] == np.round(answer.x[mip.integer]))
        return answer.x

    def test_a_change_of_weights_is_seen(self) -> None:
        """Nothing of the last objective stays."""
        mip = Mip(cost=[0.0, 0.0], A=[[1.0, 1.0]], row_lower=[1.0], row_upper=[1.0], lower=-5.0, upper=5.0)
        session = self.session(mip, [0, 1])
        for w in (1.0, 3.0, 100.0, 0.01):
            goal = Quadratic(np.zeros(2), 0.0, np.array([1.0, w]), np.zeros(2))
            x = session.solve(goal, budget=Budget(AMPLE_SECONDS), gap=1e-9).x
            assert x == pytest.approx([w / (1 + w), 1 / (1 + w)], abs=1e-3)

    def test_bounds_for_one_solve_only(self) -> None:
        """The next solve has the program's own bounds again."""
        mip = Mip(cost=[1.0, 1.0], A=[[1.0, 1.0]], row_lower=[1.0], row_upper=[np.inf], lower=0.0, upper=5.0)
        session = self.session(mip, [0])
        goal = Quadratic(np.ones(2), 0.0, np.array([1.0, 0.0]), np.zeros(2))
        fixed = (np.array([2.0, 0.0]), np.array([2.0, 5.0]))
        assert session.solve(goal, budget=Budget(AMPLE_SECONDS), bounds=fixed).value == pytest.approx(
            4.0, abs=1e-5
        )
        assert session.solve(goal, budget=Budget(AMPLE_SECONDS)).value == pytest.approx(1.0, abs=1e-5)

    def test_bounds_can_leave_nothing(self) -> None:
        """The answer has no point, and the next solve is not affected."""
        mip = Mip(cost=[1.0, 1.0], A=[[1.0, 1.0]], row_lower=[1.0], row_upper=[np.inf], lower=0.0, upper=5.0)
        session, goal = self.session(mip, []), Quadratic.linear(np.ones(2))
        nothing = session.solve(goal, budget=Budget(AMPLE_SECONDS), bounds=(np.zeros(2), np.full(2, 0.25)))
        assert nothing.status is MipStatus.INFEASIBLE
        assert nothing.x is None
        assert session.solve(goal, budget=Budget(AMPLE_SECONDS)).value == pytest.approx(1.0, abs=1e-5)

    def test_bounds_hold_for_integers_too(self) -> None:
        """For engines that accept integers."""
        if "integer" not in self.takes:
            return
        mip = Mip([1.0, 1.0], [[1.0, 1.0]], [1.5], [9.0], upper=5.0, integer=[True, True])
        session, goal = self.session(mip, []), Quadratic.linear(np.array([1.0, 2.0]))
        assert session.solve(goal, budget=Budget(AMPLE_SECONDS)).value == pytest.approx(2.0, abs=1e-6)
        one = (np.zeros(2), np.array([1.0, 5.0]))
        assert session.solve(goal, budget=Budget(AMPLE_SECONDS), bounds=one).value == pytest.approx(
            3.0, abs=1e-6
        )

    @pytest.mark.parametrize("kind", ["continuous", "binary", "mixed"])
    def test_a_cutoff_leaves_out_dearer_points_and_nothing_else(self, kind: str) -> None:
        """A cutoff above the optimum has no effect; with a cutoff below, no bound exceeds the cutoff, and
        the next solve is not affected."""
        if kind not in self.takes:
            return
        rng = np.random.default_rng(KINDS.index(kind))
        for _ in range(self.instances):
            mip, columns = program(kind, rng)
            session, goal = self.session(mip, []), Quadratic.linear(objective(mip, columns, rng).cost, 3.0)
            least = self._optimum(session, mip, goal, None)
            truth = goal.value(least)
            for start in (None, least):
                answer = session.solve(goal, budget=Budget(AMPLE_SECONDS), cutoff=truth + 1e-3, start=start)
                assert answer.status is MipStatus.OPTIMAL
                assert answer.value == pytest.approx(truth, abs=1e-5)
                assert answer.bound <= truth + 1e-5
            short = session.solve(goal, budget=Budget(AMPLE_SECONDS), cutoff=truth - 0.1)
            assert short.bound <= truth + 1e-5
            if short.status is MipStatus.INFEASIBLE:
                assert short.x is None
                assert short.bound == truth - 0.1
            else:
                assert short.value == pytest.approx(truth, abs=1e-5)
            self._optimum(session, mip, goal, None)

    @pytest.mark.parametrize("columns", [[], [0]])
    def test_infeasible_and_unbounded_are_said(self, columns: list[int]) -> None:
        """Each case has its own status and no point."""
        impossible = Mip(
            cost=[0.0, 0.0], A=[[1.0, 1.0]], row_lower=[9.0], row_upper=[10.0], lower=0.0, upper=1.0
        )
        endless = Mip(cost=[0.0, 0.0], A=[[1.0, 0.0]], row_lower=[0.0], row_upper=[10.0], lower=0.0)
        linear = Quadratic.linear(np.array([0.0, -1.0]))
        for mip, status in ((impossible, MipStatus.INFEASIBLE), (endless, MipStatus.UNBOUNDED)):
            answer = self.session(mip, columns).solve(linear, budget=Budget(AMPLE_SECONDS))
            assert answer.status is status
            assert answer.x is None

    def test_unbounded_columns_with_a_weight_are_bounded_by_it(self) -> None:
        """Infinite bounds are no reason to refuse or to guess a box."""
        goal = Quadratic(np.array([4.0, -6.0]), 0.0, np.array([2.0, 2.0]), np.array([1.0, 50.0]))
        session = self.session(Mip(cost=[0.0, 0.0], lower=-np.inf), [0, 1])
        answer = session.solve(goal, budget=Budget(AMPLE_SECONDS), gap=1e-9)
        assert answer.x == pytest.approx([-1.0, 53.0], abs=1e-3)

    def test_fixed_columns_and_programs_without_rows(self) -> None:
        """Degenerate programs, with the offset in the value."""
        mip = Mip(cost=[0.0, 0.0, 0.0], lower=[1.0, -2.0, 0.0], upper=[1.0, 2.0, 3.0])
        goal = Quadratic(
            np.array([1.0, 1.0, -1.0]), 5.0, np.array([2.0, 2.0, 0.0]), np.array([0.0, 1.0, 0.0])
        )
        answer = self.session(mip, [0, 1]).solve(goal, budget=Budget(AMPLE_SECONDS), gap=1e-9)
        assert answer.x == pytest.approx([1.0, 0.5, 3.0], abs=1e-4)
        assert answer.value == pytest.approx(5 + 1 + 1 + 0.5 + 0.25 - 3, abs=1e-5)

    def test_no_time_is_a_limit_not_a_verdict(self) -> None:
        """Without any time no statement about the program is made."""
        session = self.session(Mip(cost=[1.0], lower=0.0, upper=1.0), [0])
        answer = session.solve(Quadratic.linear(np.ones(1)), budget=Budget(0.0))
        assert answer.status is MipStatus.LIMIT
        assert answer.x is None

    def test_a_stop_request_ends_a_solve(self) -> None:
        """Ctrl-C and callbacks reach engines through the budget."""
        mip, columns = program("mixed" if "mixed" in self.takes else self.takes[0], np.random.default_rng(0))
        budget = Budget(AMPLE_SECONDS)
        budget.stop(StopReason.INTERRUPT)
        goal = objective(mip, columns, np.random.default_rng(1))
        assert self.session(mip, columns.tolist()).solve(goal, budget=budget).status is MipStatus.LIMIT

    def test_a_limit_gives_the_start_back_with_a_bound(self) -> None:
        """An inexact answer is used: never worse than the start, marked, with a valid bound."""
        if "binary" not in self.takes:
            return
        rng = np.random.default_rng(7)
        n = 60
        mip = Mip(
            cost=np.zeros(n),
            A=rng.integers(1, 30, (25, n)),
            row_lower=np.full(25, -np.inf),
            row_upper=np.full(25, 200.0),
            lower=0.0,
            upper=1.0,
            integer=True,
        )
        goal = Quadratic(-rng.uniform(5, 20, n), 0.0, np.ones(n), np.zeros(n))
        answer = self.session(mip, list(range(n))).solve(
            goal, budget=Budget(0.3), start=np.zeros(n), gap=1e-12
        )
        if answer.status is MipStatus.LIMIT:
            assert answer.x is not None
            assert answer.value <= goal.value(np.zeros(n))
            assert answer.bound <= answer.value
        else:
            assert answer.exact


def program(kind: str, rng: np.random.Generator) -> tuple[Mip, IntArray]:
    """A small bounded program of a kind, with a feasible point, and the columns that carry weights."""
    if kind == "continuous":
        integer = np.zeros(3, bool)
    elif kind in ("binary", "integer"):
        integer = np.ones(4, bool)
    else:
        integer = np.array([True, True, False, False])
    n = len(integer)
    lower = np.where(integer, 0.0, -1.0) if kind != "integer" else rng.integers(-3, 1, n).astype(float)
    upper = {"binary": np.ones(n), "integer": lower + rng.integers(1, 6, n)}.get(kind, np.full(n, 2.0))
    if kind == "wide":
        lower[:2], upper[:2] = -200.0, 200.0
    A = rng.normal(0, 1, (2, n)).round(3)
    inside = np.clip(rng.uniform(-1.0, 2.0, n), lower, upper)
    inside = np.where(integer, np.round(inside), inside)
    sides = A @ inside
    mip = Mip(
        cost=np.zeros(n),
        A=A,
        row_lower=[-np.inf, sides[1] - 1.0],
        row_upper=[sides[0] + 0.5, sides[1] + 1.0],
        lower=lower,
        upper=upper,
        integer=integer,
    )
    return mip, np.arange(n)[: max(2, n - 1)]


def objective(mip: Mip, columns: IntArray, rng: np.random.Generator) -> Quadratic:
    """Random costs, and weights around random centres."""
    weight, centre = np.zeros(mip.n_columns), np.zeros(mip.n_columns)
    weight[columns] = rng.uniform(0.2, 5.0, columns.size)
    centre[columns] = rng.uniform(-1.5, 2.5, columns.size)
    return Quadratic(rng.normal(0, 1, mip.n_columns), float(rng.normal()), weight, centre)


def true_minimum(mip: Mip, goal: Quadratic) -> float:
    """Every combination of integers, and for the continuous rest every set of limits that may be active.

    A convex quadratic is least at a point that its active limits, held as equations, make unique.
    """
    fixed, free = np.flatnonzero(mip.integer), np.flatnonzero(~mip.integer)
    near = [range(int(max(mip.lower[j], -NEAR)), int(min(mip.upper[j], NEAR)) + 1) for j in fixed]
    X = np.zeros((int(np.prod([len(values) for values in near])), mip.n_columns))
    X[:, fixed] = list(itertools.product(*near))
    A, eye = mip.A.toarray(), np.eye(mip.n_columns)
    h = np.concatenate([mip.row_upper, -mip.row_lower, mip.upper, -mip.lower])
    G, h = np.vstack([A, -A, eye, -eye])[np.isfinite(h)], h[np.isfinite(h)]
    room = h - X @ G.T
    pull = np.tile(goal.weight[free] * goal.centre[free] - goal.cost[free], (len(X), 1))
    best = np.inf
    for count in range(free.size + 1):
        for active in map(list, itertools.combinations(np.flatnonzero(G[:, free].any(axis=1)), count)):
            E = G[active][:, free]
            system = np.block([[np.diag(goal.weight[free]), E.T], [E, np.zeros((count, count))]])
            if np.linalg.matrix_rank(system) < len(system):
                continue
            Z = X.copy()
            Z[:, free] = np.linalg.solve(system, np.hstack([pull, room[:, active]]).T)[: free.size].T
            inside = Z[np.max(Z @ G.T - h, axis=1) <= 1e-9]
            best = min([best, *map(goal.value, inside)])
    return best
