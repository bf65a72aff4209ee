"""One live HiGHS object, with every return code checked and reliable time limits.

Pitfalls handled here, all measured on highspy 1.15.1: `run` and `passModel` return an error code and leave
old values readable. A time limit counts from the creation of the object for an LP, but from the start of the
run for a MIP. The thread count is fixed for each thread by its first run (`highs_threads`). Ctrl-C waits for
the end of a solve unless a callback gives control to Python. An interrupted object stays interrupted until a
callback resets it. The feasibility-jump heuristic crashes the process on programs with free variables (HiGHS
issue 3262, fixed after 1.15.1).

Users choose among MIP engines; the LPs inside bounds, trust regions and column generation are always solved
here by HiGHS. These LPs replace constraints and keep the basis, append variables, read duals and rays, and
round a dual value outward. An interface for all that would have a single implementation. A caller that needs
less (a fixed program, other costs) uses `HighsEngine` or the engine of the user's choice.
tests/test_imports.py lists the modules that may import this one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import highspy
import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import EngineError
from dovetail.mip import highs_threads
from dovetail.mip.own_thread import Mailbox, OwnThread, TurnTaker
from dovetail.mip.program import LinearProgram
from dovetail.run import work
from dovetail.run.budget import Budget
from dovetail.run.engine import MipStatus

FEASIBILITY = 1e-9
"""Tolerance of rows, bounds and reduced costs: a thousandth of that of the check, because completions add
several up."""
INTEGRALITY = 1e-7
"""Tolerance of integrality: a tenth of that of the check."""
ABSOLUTE_GAP = 1e-9
"""The absolute gap with which objectives and bounds near 0 are compared."""
FOREVER = 1e9
"""A time limit in seconds that stands for none, because HiGHS takes no infinite one."""
SMALL_COST, LARGE_COST = 1e-3, 1e6
"""Objectives with largest costs outside of these are scaled: small costs are within tolerances, large ones
lose digits."""
MANY_LP_ENTRIES = 50_000
"""LPs with more nonzeros may run for seconds and get the callback that lets Ctrl-C in."""

_Status = highspy.HighsModelStatus
STATUS = {
    _Status.kOptimal: MipStatus.OPTIMAL,
    _Status.kInfeasible: MipStatus.INFEASIBLE,
    _Status.kUnbounded: MipStatus.UNBOUNDED,
    _Status.kTimeLimit: MipStatus.LIMIT,
    _Status.kIterationLimit: MipStatus.LIMIT,
    _Status.kSolutionLimit: MipStatus.LIMIT,
    _Status.kObjectiveBound: MipStatus.LIMIT,
    _Status.kObjectiveTarget: MipStatus.LIMIT,
    _Status.kInterrupt: MipStatus.LIMIT,
    _Status.kUnknown: MipStatus.LIMIT,
}


Heard = Callable[[FloatArray | None, float], None]
"""Called with a MIP's new point or None, and its bound, while it runs."""


class SparseRows(NamedTuple):
    """Rows for a program: the arrays of a csr_array without its construction time."""

    data: FloatArray
    indices: IntArray
    indptr: IntArray


def cost_unit(cost: FloatArray) -> float:
    """The value of one unit of HiGHS's objective in the caller's units, which scales tolerances. Large costs
    are scaled down to at most 1e6, because small costs may occur together with large ones."""
    largest = float(np.max(np.abs(cost), initial=0.0))
    if largest == 0.0 or SMALL_COST <= largest <= LARGE_COST:
        return 1.0
    return largest / LARGE_COST if largest > LARGE_COST else largest


class _Callback:
    """The callback that HiGHS calls during a run, a separate object so that HiGHS does not hold its owner."""

    def __init__(self) -> None:
        self._budget = Budget()
        self._heard: Heard = _ignore_progress
        self._rests: TurnTaker | None = None
        """Lets others have a turn during the run."""
        self._ended = False
        self._point: FloatArray | None = None
        self._bound = -math.inf

    def begin(self, budget: Budget, heard: Heard) -> None:
        """Preparation before a run."""
        self._budget, self._heard, self._rests = budget, heard, None
        self._ended = False
        self._point, self._bound = None, -math.inf

    def in_turns(self, mailbox: Mailbox) -> TurnTaker:
        """Let others have a turn while the thread waits for the run."""
        self._rests = TurnTaker(mailbox, self._report_and_pause)
        return self._rests

    def count(self) -> None:
        """Count the work of the run."""
        if self._rests is not None:
            self._rests.count()

    def end(self) -> None:
        """Ask the run to end."""
        self._ended = True

    def look(self, event: Any) -> None:
        """Called during a run: Python handles signals, and a request to stop ends the run. Without turns
        HiGHS keeps the deadline itself."""
        if self._rests is not None and not self._ended:
            self._bound = float(event.data_out.mip_dual_bound)
            self._rests.look()
        event.data_in.user_interrupt = self._ended or self._budget.stopped is not None

    def better(self, event: Any) -> None:
        """Note a better point."""
        self._point = np.array(event.data_out.mip_solution, dtype=np.float64)

    def _report_and_pause(self) -> None:
        """On the waiting thread: report news, and let others work."""
        point, self._point = self._point, None
        self._heard(point, self._bound)
        self._ended = self._budget.over is not None


def _ignore_progress(point: FloatArray | None, bound: float) -> None:
    """Ignores the progress of a run."""


class LoadedHighs:
    """A program inside HiGHS, minimised repeatedly with other costs, bounds and rows."""

    def __init__(self, program: LinearProgram, *, seed: int = 0, threads: int = 1) -> None:
        self._threads = threads
        self._highs = highspy.Highs()  # type: ignore[no-untyped-call]
        self.is_mip = bool(np.any(program.integer))
        self._entries = int(program.A.nnz)
        self.effort = 0.0
        """Work of all its runs, in seconds by counts."""
        self._columns = np.arange(program.lower.size, dtype=np.int32)
        self._callback = _Callback()
        self._unit = 1.0
        self._presolve = "choose"
        for option, value in (
            ("output_flag", False),
            ("threads", threads),
            ("random_seed", seed % 2**31),
            ("primal_feasibility_tolerance", FEASIBILITY),
            ("dual_feasibility_tolerance", FEASIBILITY),
            ("mip_feasibility_tolerance", INTEGRALITY),
            ("mip_abs_gap", ABSOLUTE_GAP),
            ("mip_heuristic_run_feasibility_jump", False),
        ):
            self._require_ok(self._highs.setOptionValue(option, value), f"option {option}")
        self._require_ok(_pass_program(self._highs, program), "the model")
        if self.is_mip or program.A.nnz > MANY_LP_ENTRIES:
            self._highs.cbMipInterrupt += self._callback.look
            self._highs.cbSimplexInterrupt += self._callback.look
            self._highs.cbMipImprovingSolution += self._callback.better

    def set_objective(self, cost: FloatArray, offset: float) -> None:
        """Set the objective of the next solves, scaled if its size is far from HiGHS's absolute
        tolerances."""
        self._unit = cost_unit(cost)
        scaled = np.ascontiguousarray(cost / self._unit)
        self._require_ok(self._highs.changeColsCost(cost.size, self._columns, scaled), "costs")
        self._require_ok(self._highs.changeObjectiveOffset(float(offset / self._unit)), "the offset")

    def set_bounds(self, lower: FloatArray, upper: FloatArray) -> None:
        """Set the columns' bounds for the next solves."""
        lower, upper = np.ascontiguousarray(lower), np.ascontiguousarray(upper)
        self._require_ok(self._highs.changeColsBounds(lower.size, self._columns, lower, upper), "bounds")

    def add_rows(self, rows: sp.csr_array | SparseRows, lower: FloatArray, upper: FloatArray) -> None:
        """Append rows to the program."""
        first = rows.indptr[:-1].astype(np.int32)
        self._require_ok(
            self._highs.addRows(
                first.size, lower, upper, rows.data.size,
                first, rows.indices.astype(np.int32, copy=False), rows.data,
            ),
            "rows",
        )  # fmt: skip

    def delete_rows(self, first: int, last: int) -> None:
        """Remove rows `first` to `last` - 1."""
        which = np.arange(first, last, dtype=np.int32)
        if which.size == 0:
            return
        self._require_ok(self._highs.deleteRows(which.size, which), "removal of rows")

    def replace_rows(self, first: int, rows: SparseRows, lower: FloatArray, upper: FloatArray) -> None:
        """Replace all rows from `first` on by as many others; the basis stays, so that the next solve is
        warm."""
        basis, standing = self._highs.getBasis(), self._highs.getNumRow()  # fewer rows, if some were refused
        self.delete_rows(first, standing)
        self.add_rows(rows, lower, upper)
        if basis.valid and not self.is_mip and standing == first + lower.size:
            self._highs.setBasis(basis)

    def add_columns(self, columns: sp.csc_array) -> None:
        """Append columns between 0 and infinity without costs."""
        count = columns.shape[1]
        nothing = np.zeros(count)
        self._require_ok(
            self._highs.addCols(
                count, nothing, nothing, np.full(count, np.inf), columns.nnz,
                columns.indptr[:-1].astype(np.int32), columns.indices.astype(np.int32), columns.data,
            ),
            "columns",
        )  # fmt: skip
        self._columns = np.arange(self._columns.size + count, dtype=np.int32)

    def set_row_limits(self, row: int, lower: float, upper: float) -> None:
        """Set the limits of one row for the next solves."""
        self._require_ok(self._highs.changeRowBounds(row, lower, upper), "a row's limits")

    def row_duals(self) -> FloatArray:
        """Duals of the rows of the last LP; zeros if it has none."""
        solution = self._highs.getSolution()
        if not solution.dual_valid:
            return np.zeros(self._highs.getNumRow())
        return self._unit * np.array(solution.row_dual, dtype=np.float64)

    def dual_ray(self) -> FloatArray | None:
        """Multipliers that may prove the last LP infeasible; the caller verifies them."""
        code, found, ray = self._highs.getDualRay()  # type: ignore[attr-defined]
        if code == highspy.HighsStatus.kError or not found:
            return None
        return np.array(ray, dtype=np.float64)

    def without_presolve(self) -> None:
        """Solve without presolve from now on, for a second opinion."""
        self._require_ok(self._highs.setOptionValue("presolve", "off"), "the option presolve")
        self._presolve = "off"

    def set_start(self, x: FloatArray) -> None:
        """Set a starting point for the next MIP solve."""
        solution = highspy.HighsSolution()
        solution.col_value = x.tolist()
        self._highs.setSolution(solution)  # an unusable start is not an error

    def run(
        self,
        budget: Budget,
        gap: float,
        cutoff: float = np.inf,
        room: float = 0.0,
        heard: Heard = _ignore_progress,
    ) -> tuple[MipStatus, FloatArray | None, float]:
        """Minimise: status, point if there is one, and the engine's bound.

        A MIP under a budget in turns pauses while others work, and first passes its point and bound to
        `heard`.

        A MIP ends at the relative `gap`, or if no point can be better by more than `room`. A MIP's nodes
        above `cutoff` are pruned. The status then covers only points up to it: if there are none, a more
        expensive one may be called optimal.
        """
        if budget.over:
            return MipStatus.LIMIT, None, -np.inf
        self._require_ok(self._highs.setOptionValue("mip_rel_gap", float(gap)), "the gap")
        absolute = max(ABSOLUTE_GAP, room / self._unit)
        self._require_ok(self._highs.setOptionValue("mip_abs_gap", float(absolute)), "the absolute gap")
        limit = float(cutoff / self._unit)
        self._require_ok(self._highs.setOptionValue("objective_bound", limit), "the cutoff")
        unit = self._unit
        self._callback.begin(budget, lambda x, bound: heard(x, unit * bound))
        status = self._status(budget)
        if status is None:  # presolve reported "unbounded or infeasible" without distinguishing the two
            self._highs.setOptionValue("presolve", "off")
            status = self._status(budget)
            self._highs.setOptionValue("presolve", self._presolve)
            status = status if status is not None else MipStatus.LIMIT
        self._callback.begin(Budget(), _ignore_progress)  # removes the callback
        return status, self._point(status), self._bound(status)

    def _status(self, budget: Budget) -> MipStatus | None:
        elapsed = 0.0 if self.is_mip else self._highs.getRunTime()
        seconds = budget.deadline if self._in_turns(budget) else budget.left
        self._highs.setOptionValue("time_limit", elapsed + min(seconds, FOREVER))
        if self.is_mip:
            nodes = highspy.kHighsIInf if math.isinf(budget.nodes_left) else int(budget.nodes_left)
            self._highs.setOptionValue("mip_max_nodes", nodes)
        if self._in_turns(budget):
            code = OwnThread(self._run_aside).wait(budget, self._callback.end, math.inf)
            self._callback.count()
        else:
            code = self._run()
            if code == highspy.HighsStatus.kError and not self.is_mip:
                # from the basis of other costs: "ratio test failed due to excessive dual values"
                self._highs.clearSolver()
                code = self._run()
        self._require_ok(code, "the solve")
        self._count(counted=self._in_turns(budget))
        found = self._highs.getModelStatus()
        if found == _Status.kUnboundedOrInfeasible:
            return None
        if found not in STATUS:
            raise EngineError(f"HiGHS ended with {found.name}; its answer is not used.")
        return STATUS[found]

    def _in_turns(self, budget: Budget) -> bool:
        return self.is_mip and not math.isinf(budget.slice)

    def _run_aside(self, mailbox: Mailbox) -> highspy.HighsStatus:
        rests = self._callback.in_turns(mailbox)
        try:
            return self._run()
        finally:
            rests.end()

    def _run(self) -> highspy.HighsStatus:
        highs_threads.use(self._threads)
        return self._highs.run()

    def _count(self, *, counted: bool) -> None:
        """Count nodes and LPs, and effort that is not `counted` yet."""
        info = self._highs.getInfo()
        iterations = max(0, info.simplex_iteration_count)
        if self.is_mip:
            effort = 0.0 if counted else work.effort_of_mip(iterations, self._entries)
            work.count(nodes=max(1, int(info.mip_node_count)), effort=effort)
        else:
            effort = work.effort_of_lp(iterations, self._entries)
            work.count(lps=1, effort=effort)
        self.effort += effort

    def _point(self, status: MipStatus) -> FloatArray | None:
        solution = self._highs.getSolution()
        feasible = self._highs.getInfo().primal_solution_status == 2
        if status not in (MipStatus.OPTIMAL, MipStatus.LIMIT) or not solution.value_valid or not feasible:
            return None
        return np.array(solution.col_value, dtype=np.float64)

    def _bound(self, status: MipStatus) -> float:
        if status not in (MipStatus.OPTIMAL, MipStatus.LIMIT):
            return -np.inf
        info = self._highs.getInfo()
        if self.is_mip:
            return self._unit * float(info.mip_dual_bound)
        return self._unit * float(info.objective_function_value) if status is MipStatus.OPTIMAL else -np.inf

    @staticmethod
    def _require_ok(code: highspy.HighsStatus | None, what: str) -> None:
        if code == highspy.HighsStatus.kError:
            raise EngineError(f"HiGHS refused {what}.")


def _pass_program(highs: highspy.Highs, program: LinearProgram) -> highspy.HighsStatus:
    """Pass the program without costs as arrays, because a `HighsLp` takes numbers one by one (a second per
    million)."""
    A = program.A
    rows, columns = A.shape
    minimise, offset = 1, 0.0
    return highs.passModel(
        columns, rows, A.nnz, int(highspy.MatrixFormat.kRowwise), minimise, offset,
        np.zeros(columns), program.lower, program.upper, program.row_lower, program.row_upper,
        A.indptr, A.indices, A.data, program.integer.astype(np.int32),
    )  # fmt: skip
