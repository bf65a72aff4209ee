"""The default: looks at what the problem has, and runs the methods that are good at it, one after the other.

tables   blocks whose inputs take few values become rows; nothing left: one exact MIP
walk     sequential (MI)LP from a few starts: first points, soon good ones
exact    small ReLU networks written out after all, for a proof (and sometimes a better point)
switch   local search over integers, neighbours evaluated by the networks in batches
columns  prices on coupling rows, where several components share them
many     relax, fix, large neighbourhoods, where integers are too many for the above
walk     more starts, while there is time and they bring something
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from dovetail.analysis.boxes import tightened_box
from dovetail.bounds.box import Box
from dovetail.core.arrays import FloatArray
from dovetail.core.options import require_choice, require_count, require_flags
from dovetail.core.problem import Problem
from dovetail.linearised.scaled_problem import ScaledProblem
from dovetail.linearised.starts import Starts
from dovetail.methods.column_generation.method import ColumnGeneration
from dovetail.methods.exact_mip import solve_exact_mip
from dovetail.methods.integer_search.method import IntegerLocalSearch
from dovetail.methods.neighbourhood import Neighbourhood
from dovetail.methods.sequential_linear import SequentialLinear
from dovetail.reformulations.enumerated_inputs import with_enumerated_inputs
from dovetail.reformulations.indicator_products import with_indicator_products
from dovetail.reformulations.reformulated import Reformulated
from dovetail.reformulations.relu_big_m import ReluBigM, relu_big_m
from dovetail.reformulations.tables import with_tables
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext, Start
from dovetail.run.engine import MipStatus
from dovetail.run.incumbent import ReformulatedIncumbent

MANY_INTEGERS = 2000
MANY_COMPONENTS = 200
"""With more of them columns come first: a MILP step over all their classes takes longer than ten pricings."""
EASY_NEURONS, MOST_NEURONS = 64, 400
"""Neurons that may change sign: up to the first the exact leg comes early, beyond the second not at all."""
EARLY_SHARE, LATE_SHARE = 0.5, 0.3
FIRST_STARTS, FIRST_SHARE, LAST_SWITCH_SHARE = 3, 0.15, 0.5


@dataclass(frozen=True)
class Auto:
    """Options of the default method: what may be used, and how much of it.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, -1.0], upper=[3.0, 9.0], integer=[True, False]))
    >>> block = problem.add_predictor(lambda X: X**2, inputs=[0], outputs=[1])
    >>> result = dt.solve(problem, dt.Auto(effort=1), log=False)
    >>> result.status.value, result.objective
    ('optimal', -6.0)
    """

    effort: int | None = None
    """Starts, rounds and neighbourhoods of each method; None: as many as the time allows."""
    patience: int = 30
    """Starts in a row that may bring nothing before the search ends early."""
    tables: bool = True
    exact: bool = True
    columns: bool = True
    switching: bool = True
    selection: bool = True
    memory: int = 8
    """Views that the walks keep as cuts (see `SequentialLinear`)."""
    scaling: Literal["box", "none"] = "box"
    """Trust regions in units of each input's own box, or of one width for all."""

    name = "auto"

    def __post_init__(self) -> None:
        if self.effort is not None:
            require_count("Auto: effort", self.effort, at_least=1)
        require_count("Auto: patience", self.patience, at_least=1)
        require_count("Auto: memory", self.memory, at_least=0)
        require_choice("Auto: scaling", self.scaling, ("box", "none"))
        require_flags("Auto", self, "tables", "exact", "columns", "switching", "selection")

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Tables first; what is left goes to the methods that suit it."""
        with context.stopwatch.measure("engine"):
            box = tightened_box(context.problem, context.budget, seed=context.seed, threads=context.threads)
        table = with_tables(context.problem, box) if self.tables else None
        if table is None:
            return _Plan(self, context, box).run()
        count = sum(b.samples for b in context.problem.blocks) - sum(b.samples for b in table.problem.blocks)
        context.monitor.say(
            f"  tables: {count} samples have few inputs to choose from and became rows "
            f"(+{table.problem.mip.n_columns - context.problem.mip.n_columns} columns)"
        )
        if table.problem.blocks:
            return _Plan(self, _through(context, table), table.widen(box), table.relaxed).run()
        trouble = _solve_tables(context, table)
        reason = StopReason.PROVED if context.incumbent.proved else context.budget.over or StopReason.STALLED
        return MethodOutcome(reason, 1, trouble or "all networks became tables; the MIP is exact")


def _solve_tables(context: SolveContext, table: Reformulated) -> str:
    """One MIP, for points and a bound; or where answers may move with the batch, one for each."""
    budget = context.budget
    if table.relaxed is not None:
        solve_exact_mip(
            context, with_indicator_products(table), budget.part(0.5 * budget.left), "tables", proves=False
        )
        if budget.over:
            return ""
    bounds = with_indicator_products(table.for_bounds)
    return solve_exact_mip(context, bounds, budget, "tables", offers=table.relaxed is None)[1]


def _through(context: SolveContext, reformulated: Reformulated) -> SolveContext:
    """The same search over the extended problem; candidates go to the original's incumbent."""
    incumbent = ReformulatedIncumbent(context.incumbent, context.problem.mip.n_columns, reformulated.lift)
    x = context.start.x
    start = Start(None if x is None else reformulated.lift(x), None)
    return replace(context, problem=reformulated.problem, incumbent=incumbent, start=start)


class _Plan:
    """What is done, in which order, and why."""

    def __init__(
        self, options: Auto, context: SolveContext, box: Box, relaxed: Problem | None = None
    ) -> None:
        self._options, self._context = options, context
        self._relaxed = relaxed
        """What bounds are proved of, if not of the problem itself."""
        self._scaled = ScaledProblem.of(context, box=box, scaled=options.scaling == "box")
        self._notes: list[str] = []
        self._seen: list[FloatArray] = []
        self._starts = iter(Starts(context, self._scaled))
        self._walked = context, self._scaled, self._starts
        """Where walks go: the problem itself, or one with its integer inputs spelled out."""
        reformulated = with_enumerated_inputs(context.problem, box) if options.selection else None
        if reformulated is not None:
            self._spell_out(reformulated, reformulated.widen(box))

    def _spell_out(self, reformulated: Reformulated, box: Box) -> None:
        more = reformulated.problem.mip.n_columns - reformulated.original.mip.n_columns
        self._say(f"integer inputs have few combinations: {more} binaries choose among them on walks")
        context = _through(self._context, reformulated)
        scaled = ScaledProblem.of(context, box=box, scaled=self._options.scaling == "box")
        self._walked = context, scaled, iter(Starts(context, scaled))

    def run(self) -> MethodOutcome:
        """Until something is proved, the time is over, or nothing helps any more."""
        reason: StopReason | None = None
        for step in self._steps():
            reason = step() or reason
            if self._context.incumbent.proved:
                reason = StopReason.PROVED
                break
            if self._context.budget.over:
                reason = self._context.budget.over
                break
        return MethodOutcome(
            reason or StopReason.STALLED,
            len(self._context.monitor.trace),
            "; ".join(self._notes),
        )

    def _steps(self) -> list[Callable[[], StopReason | None]]:
        scaled, options = self._scaled, self._options
        integers = int(np.count_nonzero(scaled.free_integers))
        parts = scaled.parts
        classes = bool(scaled.networks.classes.any())
        coupled = parts.count > 1 and not np.all(parts.private_rows)
        exact = relu_big_m(self._context.problem, scaled.box) if options.exact else None
        if exact is not None and (integers > MANY_INTEGERS or exact.unstable > MOST_NEURONS):
            exact = None
        early = exact is not None and exact.unstable <= EASY_NEURONS
        steps: list[Callable[[], StopReason | None]] = []
        by_columns = classes and coupled and options.columns
        if integers > MANY_INTEGERS:
            self._say(f"{integers} integers: relax, fix, large neighbourhoods")
            steps.append(self._relaxation)
        elif not by_columns or parts.count <= MANY_COMPONENTS:
            self._say("sequential linear steps from a few starts")
            steps.append(self._first_walk)
        choices = int(np.count_nonzero(scaled.free_integers)) - int(scaled.networks.classes.sum())
        switchable = choices > 0 and options.switching
        if exact is not None and early:
            self._say(f"{exact.unstable} neurons may change sign: few enough to be written out, early")
            steps.append(partial(self._exact, exact, EARLY_SHARE))
        if switchable:
            self._say(f"{choices} integers beside classes: local search over them by the networks themselves")
            steps.append(lambda: self._switch(FIRST_SHARE))
        if by_columns:
            self._say(f"class outputs, {parts.count} components that share rows: columns and prices")
            steps.append(self._columns)
        elif exact is not None and not early:
            steps.append(self._middle_walk)
        if exact is not None and not early:
            self._say(f"{exact.unstable} neurons may change sign: written out for a proof, late")
            steps.append(partial(self._exact, exact, LATE_SHARE))
        if switchable:
            steps.append(lambda: self._switch(LAST_SWITCH_SHARE))
        steps.append(self._last_walk if integers <= MANY_INTEGERS else self._neighbourhoods)
        return steps

    def _say(self, text: str) -> None:
        self._context.monitor.say(f"  auto: {text}")
        self._notes.append(text)

    def _part(self, share: float) -> SolveContext:
        budget = self._context.budget
        return replace(self._context, budget=budget.part(share * budget.left))

    def _first_walk(self) -> StopReason:
        effort = self._options.effort
        starts = FIRST_STARTS if effort is None else min(FIRST_STARTS, effort)
        return self._walk(FIRST_SHARE, starts, lambda z: self._seen.append(z[: self._scaled.host.n_columns]))

    def _middle_walk(self) -> StopReason:
        return self._walk(0.5, self._options.effort)

    def _last_walk(self) -> StopReason:
        return self._walk(1.0, self._options.effort)

    def _walk(
        self, share: float, starts: int | None, seen: Callable[[FloatArray], object] | None = None
    ) -> StopReason:
        """Go on with the starts where the last walk stopped."""
        options = self._options
        method = SequentialLinear(starts=starts, patience=options.patience, memory=options.memory)
        context, scaled, starting = self._walked
        if share < 1.0:
            context = replace(context, budget=self._part(share).budget)
        return method.run(context, scaled, starts=starting, seen=seen).stop_reason

    def _switch(self, share: float) -> StopReason:
        method = IntegerLocalSearch(rounds=self._options.effort, patience=self._options.patience)
        return method.run(self._part(share), self._scaled, starts=self._starts).stop_reason

    def _columns(self) -> StopReason:
        method = ColumnGeneration(rounds=self._options.effort)
        return method.run(self._context, self._scaled, self._seen).stop_reason

    def _relaxation(self) -> StopReason:
        return Neighbourhood(rounds=1).run(self._context, self._scaled).stop_reason

    def _neighbourhoods(self) -> StopReason:
        method = Neighbourhood(rounds=self._options.effort)
        return method.run(self._context, self._scaled, relax=False).stop_reason

    def _exact(self, exact: ReluBigM, share: float) -> StopReason | None:
        """Small networks as one MIP, for points and a bound at once; where the two differ, once for each."""
        context, budget = self._context, self._part(share).budget
        apart = exact.apart or self._relaxed is not None
        if apart or not exact.proves:
            clear = exact.program(margin=True)
            part = budget.part(0.5 * budget.left) if exact.proves else budget
            solve_exact_mip(context, clear, part, "exact", proves=False)
        if not exact.proves:
            self._notes.append("the networks' own rounding has no bound: nothing is proved from their layers")
            return None
        # what a bound must allow for may let a point through that misses a row: good for a bound only
        bounds = exact if self._relaxed is None else replace(exact, problem=self._relaxed)
        answer, trouble = solve_exact_mip(context, bounds.program(), budget, "exact", offers=not apart)
        if trouble:
            self._notes.append(trouble)
        if answer is not None and answer.status is MipStatus.INFEASIBLE and context.incumbent.x is None:
            self._notes.append("HiGHS finds no solution of the problem with its networks written out")
            context.budget.stop(StopReason.STALLED)
        return None
