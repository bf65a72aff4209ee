"""SCIP as an engine: proximal terms are a few constraints t >= sum of w/2 s^2, replaced when weights change.

SCIP 10.0 aborts the process ("free(): invalid size") where its heuristics pass some thousands of squares to
a nonlinear solver, in one constraint or in many, so its NLP is switched off. With one constraint for all
squares SCIP needs minutes to start; with one constraint for each square it needs seconds at every node.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import EngineError, MissingDependencyError
from dovetail.core.mip import Mip
from dovetail.mip.expansion import Expansion
from dovetail.mip.own_thread import Mailbox, OwnThread, TurnTaker
from dovetail.mip.program import LinearProgram
from dovetail.run import work
from dovetail.run.budget import Budget, OutOfTime
from dovetail.run.engine import (
    Bounds,
    Heard,
    MipAnswer,
    MipSession,
    MipStatus,
    Quadratic,
    certified,
    within_cutoff,
)
from dovetail.run.failures import expendable

FEASIBILITY = 1e-7
"""Tolerance: a tenth of that of the check, and of SCIP's default."""
FOREVER = 1e20
"""A time limit in seconds that stands for none, and SCIP's infinity."""
INTERRUPTIBLE = (3, 4, 5, 6, 7, 9)
"""SCIP's stages from "transformed" to "solving" in which it can be interrupted; in others it prints an
error."""
SOLVING = 9
"""The stage with a search tree."""
SQUARES, ROWS = 256, 100
"""Squares in one row, and the largest number of rows; beyond both the rows grow. The cost of a row is cubic
in its squares."""


STATUS = {
    "optimal": MipStatus.OPTIMAL,
    "gaplimit": MipStatus.OPTIMAL,
    "infeasible": MipStatus.INFEASIBLE,
    "unbounded": MipStatus.UNBOUNDED,
    **dict.fromkeys(
        ("timelimit", "nodelimit", "totalnodelimit", "memlimit", "sollimit", "userinterrupt"), MipStatus.LIMIT
    ),
}
SETTINGS = {
    "numerics/feastol": FEASIBILITY,
    "numerics/dualfeastol": 1e-9,
    "misc/catchctrlc": False,  # dovetail handles Ctrl-C and returns the best point
    "nlp/disable": True,
}


class ScipEngine:
    """SCIP for MILPs and convex MIQPs."""

    name = "scip"

    def refuses(self, mip: Mip, columns: IntArray) -> str | None:
        """SCIP takes every program."""
        return None

    def load(self, mip: Mip, columns: IntArray, *, seed: int = 0, threads: int = 1) -> MipSession:
        """Build the model once. SCIP itself uses one thread."""
        return ScipSession(import_scip('engine "scip"'), mip, columns, seed)


def import_scip(who: str) -> Any:
    """PySCIPOpt, or an error that names the part that needs the library and how to install it."""
    try:
        import pyscipopt
    except ImportError:
        raise MissingDependencyError(f"{who} needs PySCIPOpt: pip install pyscipopt.") from None
    return pyscipopt


def watched_model(scip: Any, budget: Budget) -> Any:
    """An empty model that checks the clock whenever something is added, because writing large models takes
    minutes."""

    class WatchedScip(scip.Model):  # type: ignore[misc]
        def addVar(self, *args: Any, **kwargs: Any) -> Any:
            self.require_time()
            return super().addVar(*args, **kwargs)

        def addCons(self, *args: Any, **kwargs: Any) -> Any:
            self.require_time()
            return super().addCons(*args, **kwargs)

        def require_time(self) -> None:
            if self.budget.over:
                raise OutOfTime

    model = WatchedScip()
    model.budget = budget
    model.hideOutput()
    model.places = _places_to_rest(scip)
    model.includeEventhdlr(model.places, "rests", "lets others work")
    return model


def _places_to_rest(scip: Any) -> Any:
    """Events of SCIP at which it may rest: after each round of presolve and each LP."""
    events = scip.SCIP_EVENTTYPE.PRESOLVEROUND, scip.SCIP_EVENTTYPE.LPSOLVED, scip.SCIP_EVENTTYPE.NODESOLVED

    class Places(scip.Eventhdlr):  # type: ignore[misc]
        rests: TurnTaker | None = None
        """Let others have turns during the solve."""

        def eventinit(self) -> None:
            for event in events:
                self.model.catchEvent(event, self)

        def eventexit(self) -> None:
            for event in events:
                self.model.dropEvent(event, self)

        def eventexec(self, event: Any) -> None:
            if self.rests is not None:
                self.rests.look()

    return Places()


def interrupter(model: Any) -> Callable[[], None]:
    """An event handler that requests the end of a running SCIP."""

    def interrupt() -> None:
        with suppress(Exception):  # SCIP may have ended already and then reports an error
            if model.getStage() in INTERRUPTIBLE:
                model.interruptSolve()

    return interrupt


def final_status(model: Any) -> str:
    """SCIP's status after a run; an error for a run that SCIP gave up ("error in LP solver!")."""
    before, iterations = _nodes(model), _iterations(model)
    try:
        model.optimizeNogil()
    except Exception as reason:
        if not str(reason).startswith("SCIP:"):
            raise
        raise EngineError(f"SCIP gave up ({reason}); its answer is not used.") from reason
    effort = 0.0 if model.places.rests is not None else work.effort_of_mip(_iterations(model) - iterations)
    work.count(nodes=max(1, _nodes(model) - before), effort=effort)
    return str(model.getStatus())


def run_to_the_end(
    model: Any, budget: Budget, heard: Callable[[], None] = lambda: None, spent: float = 0.0
) -> str | None:
    """SCIP's status at the end; None if time ran out first. `spent`: the time used so far. In turns, it
    pauses after `heard` was called with the known point and bound."""
    in_turns = not math.isinf(budget.slice)
    end = interrupter(model)

    def rest() -> None:
        if model.getStage() == SOLVING:
            heard()
        if budget.over:
            end()

    looks: list[TurnTaker] = []

    def run(mailbox: Mailbox) -> str:
        looks.extend((TurnTaker(mailbox, rest),) if in_turns else ())
        model.places.rests = looks[0] if looks else None
        try:
            return final_status(model)
        finally:
            model.places.rests = None
            for one in looks:
                one.end()

    seconds = budget.deadline if in_turns else budget.left
    model.setParam("limits/time", min(spent + seconds, FOREVER))
    try:
        return OwnThread(run).wait(budget, end)
    finally:
        for one in looks:
            one.count()


def _iterations(model: Any) -> int:
    """Simplex iterations so far."""
    return int(model.getNLPIterations()) if model.getStage() >= SOLVING else 0


def _nodes(model: Any) -> int:
    return int(model.getNTotalNodes()) if model.getStage() >= SOLVING else 0


def add_program(scip: Any, model: Any, program: LinearProgram) -> list[Any]:
    """Write rows and the columns with limits in `lower` into a SCIP model; returns the variables."""
    A, row_lower, row_upper, lower, upper, integer = program
    variables = [
        model.addVar(
            name=f"c{j}",
            vtype="I" if integer[j] else "C",
            lb=None if np.isneginf(lower[j]) else float(lower[j]),
            ub=None if np.isposinf(upper[j]) else float(upper[j]),
        )
        for j in range(lower.size)
    ]
    for i in range(A.shape[0]):
        entries = range(A.indptr[i], A.indptr[i + 1])
        expression = scip.quicksum(float(A.data[k]) * variables[A.indices[k]] for k in entries)
        if np.isfinite(row_lower[i]) and row_lower[i] == row_upper[i]:
            model.addCons(expression == float(row_lower[i]))
            continue
        if np.isfinite(row_lower[i]):
            model.addCons(expression >= float(row_lower[i]))
        if np.isfinite(row_upper[i]):
            model.addCons(expression <= float(row_upper[i]))
    return variables


class ScipSession:
    """A program inside SCIP, written at the first solve, because only a solve has a clock."""

    def __init__(self, scip: Any, mip: Mip, columns: IntArray, seed: int) -> None:
        self._scip, self._mip, self._seed = scip, mip, seed
        self._expansion = Expansion.of(mip, columns)
        self._live: _LoadedScip | None = None
        self._asked: tuple[Quadratic, Bounds | None] | None = None
        """The last call that a limit ended."""

    def solve(
        self,
        objective: Quadratic,
        *,
        budget: Budget,
        start: FloatArray | None = None,
        gap: float = 1e-6,
        bounds: Bounds | None = None,
        cutoff: float = np.inf,
        heard: Heard | None = None,
    ) -> MipAnswer:
        """Minimise, up to `gap` unless a limit is reached. Called again with the same objects, SCIP
        continues where the limit ended it."""
        nothing = MipAnswer(MipStatus.LIMIT, None, np.inf, -np.inf)
        if budget.over:
            return nothing
        before, self._asked = self._asked, None
        again = before is not None and before[0] is objective and before[1] is bounds
        try:
            if self._live is None:
                self._live = _LoadedScip(self._scip, self._expansion, self._seed, budget)
            if not again:
                self._live.prepare(objective, bounds or (self._mip.lower, self._mip.upper), budget)
            if start is not None:
                self._live.offer(start)
        except OutOfTime:
            self._live = None  # the model is only half written
            return nothing
        live = self._live

        def so_far() -> None:
            if heard is not None:
                heard(within_cutoff(self._answer("timelimit", live, objective, bounds), cutoff))

        try:
            said = live.run(budget, gap, cutoff, so_far, again=again)
        except BaseException:
            self._live = None  # in whatever state SCIP is
            raise
        if said is None:  # SCIP still computes, and cannot be used again
            self._live = None
            return nothing
        answer = self._answer(said, self._live, objective, bounds)
        if answer.status is MipStatus.LIMIT:
            self._asked = objective, bounds
        return within_cutoff(answer, cutoff)

    def _answer(self, said: str, live: _LoadedScip, objective: Quadratic, bounds: Bounds | None) -> MipAnswer:
        if said == "inforunbd":
            status = MipStatus.LIMIT
        elif said in STATUS:
            status = STATUS[said]
        else:
            raise EngineError(f"SCIP ended with {said!r}; its answer is not used.")
        x = live.best() if status not in (MipStatus.INFEASIBLE, MipStatus.UNBOUNDED) else None
        if x is None:
            return MipAnswer(status, None, np.inf, live.bound if said == "timelimit" else -np.inf)
        return certified("SCIP", self._mip, objective, x[: self._mip.n_columns], status, live.bound, bounds)


class _LoadedScip:
    """One SCIP model: the expanded program with one variable for all squares."""

    def __init__(self, scip: Any, expansion: Expansion, seed: int, budget: Budget) -> None:
        self._scip, self._expansion = scip, expansion
        self._model = watched_model(scip, budget)
        self._model.setParams({**SETTINGS, "randomization/randomseedshift": seed % 2**31})
        program, linear = expansion.program(), expansion.first_square
        self._bounds = (program.lower[:linear], program.upper[:linear])
        lower, upper = self._bounds
        without_squares = program._replace(lower=lower, upper=upper, integer=program.integer[:linear])
        self._variables = add_program(scip, self._model, without_squares)
        count = expansion.squares_of.size
        rows = min(ROWS, -(-count // SQUARES))
        self._groups = np.array_split(np.arange(count), rows) if rows else []
        self._sums = [self._model.addVar(name=f"t{k}", lb=0.0) for k in range(rows)]
        self._weights = np.zeros(count)
        self._rows: list[Any] = []

    def prepare(self, objective: Quadratic, bounds: Bounds, budget: Budget) -> None:
        self._model.budget = budget
        self._model.freeTransform()
        linear = self._expansion.first_square
        lower, upper = self._expansion.limits(*bounds)
        self._set_bounds((lower[:linear], upper[:linear]))
        cost, offset = self._expansion.cost(objective)
        self._set_weights(cost[linear:])
        used = np.flatnonzero(cost[:linear])
        total = self._scip.quicksum(float(cost[j]) * self._variables[j] for j in used)
        self._model.setObjective(total + self._scip.quicksum(self._sums) + offset, "minimize")
        self._cutoff = float(self._model.infinity())
        self._model.setObjlimit(self._cutoff)

    def run(
        self, budget: Budget, gap: float, cutoff: float, heard: Callable[[], None], *, again: bool
    ) -> str | None:
        """SCIP's final status; None if time ran out first. `again` continues."""
        model = self._model
        model.setParam("limits/gap", gap)
        nodes = -1 if math.isinf(budget.nodes_left) else int(budget.nodes_left) + _nodes(model)
        model.setParam("limits/totalnodes", nodes)
        if cutoff < self._cutoff:
            self._cutoff = cutoff
            model.setObjlimit(cutoff)
        return run_to_the_end(model, budget, heard, model.getSolvingTime() if again else 0.0)

    def best(self) -> FloatArray | None:
        model = self._model
        if model.getNSols() == 0:
            return None
        best = model.getBestSol()
        return np.array([model.getSolVal(best, variable) for variable in self._variables])

    @property
    def bound(self) -> float:
        bound = float(self._model.getDualbound())
        return bound if abs(bound) < FOREVER else -np.inf

    def _set_weights(self, weights: FloatArray) -> None:
        """Write the rows of the squares if the weights changed."""
        if np.array_equal(weights, self._weights):
            return
        for row in self._rows:
            self._model.delCons(row)
        self._weights = weights.copy()
        self._rows = [
            self._model.addCons(total >= self._scip.quicksum(map(self._square, group[weights[group] > 0.0])))
            for total, group in zip(self._sums, self._groups, strict=True)
            if np.any(weights[group] > 0.0)
        ]

    def _square(self, k: int) -> Any:
        shifted = self._variables[self._expansion.squares_of[k]] - float(self._expansion.reference[k])
        return float(self._weights[k]) * shifted * shifted

    def _set_bounds(self, bounds: Bounds) -> None:
        lower, upper = bounds
        moved = np.flatnonzero((lower != self._bounds[0]) | (upper != self._bounds[1]))
        infinity = self._model.infinity()
        for j in moved:
            self._model.chgVarLb(self._variables[j], float(np.maximum(lower[j], -infinity)))
            self._model.chgVarUb(self._variables[j], float(np.minimum(upper[j], infinity)))
        self._bounds = (lower.copy(), upper.copy())

    def offer(self, x: FloatArray) -> None:
        """Add a point to begin or continue with."""
        lifted = self._expansion.lift(x)
        linear = self._expansion.first_square
        solution = self._model.createOrigSol()
        for variable, value in zip(self._variables, lifted[:linear], strict=True):
            self._model.setSolVal(solution, variable, float(value))
        squares = self._weights * lifted[linear:]
        for total, group in zip(self._sums, self._groups, strict=True):
            self._model.setSolVal(solution, total, float(squares[group].sum()))
        self._model.addSol(solution)


GAP = 1e-7
"""Relative, a tenth of what `optimal` promises: spatial branching is no finer than its tolerances."""

Function = tuple[int, list[int], FloatArray, FloatArray, float]
"""Column y, columns x, and y = x'Qx + linear'x + constant."""


def solve_quadratic(
    mip: Mip, functions: Sequence[Function], budget: Budget, seed: int, start: FloatArray | None
) -> MipAnswer | None:
    """Minimise the cost of `mip`, in minimisation form; None if SCIP has no result."""
    scip = import_scip("a quadratic program")
    try:
        model = watched_model(scip, budget)
        model.setParams(
            {
                **SETTINGS,
                "randomization/randomseedshift": seed % 2**31,
                "constraints/nonlinear/tightenlpfeastol": False,  # its LP solver prints warnings, and cannot
                "limits/gap": GAP,
            }
        )
        variables = add_program(scip, model, LinearProgram.of(mip))
        for y, x, Q, linear, constant in functions:
            own = [variables[j] for j in x]
            square = scip.quicksum(
                float(Q[i, j]) * own[i] * own[j] for i, j in zip(*np.nonzero(Q), strict=True)
            )
            rest = scip.quicksum(float(linear[i]) * own[i] for i in np.flatnonzero(linear))
            model.addCons(variables[y] == square + rest + constant)
        cost = scip.quicksum(float(mip.cost[j]) * variables[j] for j in np.flatnonzero(mip.cost))
        model.setObjective(cost + mip.offset, "minimize")
        if start is not None:
            solution = model.createSol()
            for variable, number in zip(variables, start, strict=True):
                model.setSolVal(solution, variable, float(number))
            model.addSol(solution)
    except OutOfTime:
        return None
    said = None
    with expendable("quadratic program of SCIP", EngineError):
        said = run_to_the_end(model, budget)
    if said is None or model.getNSols() == 0:
        return None
    best = model.getBestSol()
    point = np.array([model.getSolVal(best, variable) for variable in variables])
    status, bound = STATUS.get(said, MipStatus.LIMIT), float(model.getDualbound())
    with expendable("quadratic program of SCIP", EngineError):
        return certified("SCIP", mip, Quadratic.linear(mip.cost, mip.offset), point, status, bound)
    return None
