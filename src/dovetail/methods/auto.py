"""The default method: inspects the problem and runs the methods that suit it, in turns.

Limits on probabilities become rows on their logits, and blocks whose inputs take few values become tables; if
no network is left, the problem is one exact MIP. Everything else follows the table in `phases.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from string import Formatter

from dovetail.bounds.box import propagate
from dovetail.core.words import several
from dovetail.decomposition.plan import template_plan
from dovetail.linearised.scaled_problem import ScaledProblem, scaled_problem
from dovetail.methods import phases
from dovetail.methods.component_prices.prices import MOST_CERTIFIED
from dovetail.methods.exact_mip import ExactMip, whole_form
from dovetail.methods.facts import MANY_BLOCKS, AutoOptions, Facts
from dovetail.methods.out_of_reach import out_of_reach
from dovetail.methods.phases import Phase
from dovetail.reformulations.absolute_values import AbsoluteValues
from dovetail.reformulations.chained_networks import ChainedNetworks, TakenApart
from dovetail.reformulations.indicators import IndicatorProducts
from dovetail.reformulations.linear_parts import LinearParts
from dovetail.reformulations.logit_rows import LogitRows, may_have_logits
from dovetail.reformulations.one_order import OneOrder
from dovetail.reformulations.presolve import Presolve
from dovetail.reformulations.reformulated import Reformulated, context_of, reformulate
from dovetail.reformulations.tables import Tables, may_have_tables
from dovetail.reformulations.tree_rows import TreeRows, may_have_tree_rows
from dovetail.run.budget import OutOfTime, StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.failures import expendable
from dovetail.run.monitor import SolvePart
from dovetail.run.progress import worthwhile
from dovetail.run.turns import (
    FIRST_SEARCH_SHARE,
    SEARCH_SHARE,
    Clock,
    Computation,
    next_of,
    proves_next,
)
from dovetail.structure.structure import structure_of

MOST_PRESOLVED = 2000
"""Largest number of samples of a problem that is presolved."""
TABLES_SHARE = 0.25
"""Share of the time left for the answers of long tables; the MIP over them and a search need the rest."""

HEAD_START = 500_000
"""Microseconds of effort for the MIP of the whole problem before searches begin; searches would evaluate
predictors whose answers are in its tables. Nine such problems of the zoo take as much work with 0, 0.5 and 2
s; a table of 480 answers takes 0.13 s, and sites with 15 binaries had no good solution for 6 s with 2 s."""

COUNT_PATTERN = re.compile(r"\{(\w+)\} (\w+)s(?=:| of)")
"""A number of things not followed by a verb, which would have to agree."""


@dataclass(frozen=True)
class Auto(AutoOptions):
    """The default method: all parts that suit the problem work in turns (docs/auto.md).

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, -1.0], upper=[3.0, 9.0], integer=[True, False]))
    >>> block = problem.add_predictor(lambda X: X**2, inputs=[0], outputs=[1])
    >>> result = dt.solve(problem, dt.Auto(effort=1), log=False)
    >>> result.status.value, result.objective
    ('optimal', -6.0)
    """

    name = "auto"
    uses_cluster = True
    has_parts = True

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Rewrite limits on probabilities and tables, then run the parts that suit the problem. A
        reformulation that fails is skipped."""
        _say_what_is_not_read(context)
        if context.cluster is not None:
            return _Plan(self, context).run()
        given = context
        with expendable("presolve"):
            context = _presolved(context)
        outcome = self._solved(context)
        if outcome.infeasible and context is not given:
            return self._solved(given)  # what the check forgives may be more in the rows as they are written
        return outcome

    def _solved(self, context: SolveContext) -> MethodOutcome:
        """Solve the problem in its current form."""
        if self.exact:
            with expendable("reach of the predictors"):
                if (ended := out_of_reach(context)) is not None:
                    return ended
            with expendable("rows on logits"):
                context = _by_logits(context)
        given, written = context, None
        with expendable("trees as rows"):
            context = _by_tree_rows(context)
            if not context.problem.blocks:
                written = _of_rows(context)
        if written is not None:
            return _Plan(self, given, given, written).run()
        if self.tables:
            with expendable("tables"):
                context, written = _by_tables(context)
        return _Plan(self, context, given, written).run()


def _say_what_is_not_read(context: SolveContext) -> None:
    """Log why trees are searched like any function and have no bound."""
    for block in context.problem.blocks:
        reason = block.description.why_no_trees
        if reason:
            context.monitor.fact("no trees", f"{block.name}: {reason} They are searched without a bound.")


def _presolved(context: SolveContext) -> SolveContext:
    """The solve with the problem in its simplest form. Problems with very many blocks are not presolved."""
    if context.once(structure_of).samples > MOST_PRESOLVED or _has_many_blocks(context):
        return context
    form = Reformulated.start(context.problem, context.once(structure_of).tight_box, context.relaxed)
    notes, after = [], dict[type, Reformulated]()
    for step in (
        TakenApart(), OneOrder(), Presolve(), LinearParts(), Presolve(), ChainedNetworks(), AbsoluteValues(),
        OneOrder(),
    ):  # fmt: skip
        if form is after.get(type(step)):
            continue  # nothing has changed since then
        further = reformulate(form, (step,))
        notes += [further.note] if further is not form and further.note else []
        form = after[type(step)] = further
    if notes:
        context.monitor.fact("presolve", "; ".join(notes))
    return context_of(context, form)


def _by_logits(context: SolveContext) -> SolveContext:
    """The solve with limits on probabilities as rows on their logits, if there are any."""
    if not may_have_logits(context.problem):
        return context
    given = Reformulated.start(context.problem, context.once(structure_of).tight_box, context.relaxed)
    rewritten = reformulate(given, (LogitRows(),))
    if rewritten.note:
        context.monitor.say(f"  logits: {rewritten.note}")
    return context_of(context, rewritten)


def _by_tree_rows(context: SolveContext) -> SolveContext:
    """The solve with trees beside networks, or chained trees, as rows, if possible."""
    if not may_have_tree_rows(context.problem):
        return context
    given = Reformulated.start(context.problem, context.once(structure_of).tight_box, context.relaxed)
    rewritten = reformulate(given, (TreeRows(context.once(structure_of).loose_rows_box),))
    if rewritten.note:
        context.monitor.fact("trees", rewritten.note)
    return context_of(context, rewritten)


def _of_rows(context: SolveContext) -> SolveContext:
    """The solve of a problem all of whose predictors were trees and became rows."""
    box = propagate((context.relaxed or context.problem).mip.minimised())  # holds the points of both
    whole = Reformulated.start(context.problem, box, context.relaxed)
    context.keep(whole_form, ExactMip(whole, source="splits"))
    return context


def _has_many_blocks(context: SolveContext) -> bool:
    """Whether many blocks are equal up to their data."""
    many = context.once(structure_of).samples > MANY_BLOCKS
    plan = context.once(template_plan) if many else None
    return plan is not None and plan.count > MANY_BLOCKS


def _by_tables(context: SolveContext) -> tuple[SolveContext, SolveContext | None]:
    """The solve with tables instead of networks, if possible; and the solve of the MIP, if no network is
    left."""
    if not may_have_tables(context.problem) or _has_many_blocks(context):
        return context, None  # with tables of some alone, blocks would differ
    given = Reformulated.start(context.problem, context.once(structure_of).tight_box, context.relaxed)
    seconds = TABLES_SHARE * context.budget.left
    tables = reformulate(given, (Tables(seconds, lambda why: context.monitor.fact("no table", why)),))
    if tables.note:
        context.monitor.fact("tables", tables.note)
    if tables.problem.blocks:
        return context_of(context, tables), None
    context.keep(whole_form, ExactMip(reformulate(tables, (IndicatorProducts(),))))
    return context, context


class _Running(Computation):
    """A part at work."""

    def __init__(self, phase: Phase, part: SolvePart, run: Callable[[], MethodOutcome], clock: Clock) -> None:
        super().__init__(run, clock, phase.proves)
        self.phase, self.part = phase, part


class _Plan:
    """The parts for one problem."""

    def __init__(
        self,
        options: Auto,
        context: SolveContext,
        given: SolveContext | None = None,
        written: SolveContext | None = None,
    ) -> None:
        self._options, self._notes = options, list[str]()
        self._doubt = ""
        """Why there may be no solution."""
        self._context = context
        self._given = self._context if given is None or given is context else given
        """The problem before trees became rows."""
        self._written = written
        """The MIP of the whole problem, if no predictor is left."""
        self._measure(self._context)
        self._facts = Facts(
            (self._context, options),
            whole=written is not None,
            trees_beside_others=self._trees_beside_others(),
        )
        self._running: list[_Running] = []
        """Parts that have begun and not ended."""
        self._infeasible = False
        """Whether infeasibility is proved."""

    def _trees_beside_others(self) -> bool:
        """Whether trees stand beside other predictors, or are chained, and a bound is asked for."""
        structure = self._given.once(structure_of)
        with expendable("trees beside others"):
            return self._options.exact and structure.tree_blocks is not None and structure.ensembles is None
        return False

    def run(self) -> MethodOutcome:
        """Parts in turns, until something is proved, the time is over, or all have ended. A part is selected
        and begun when `next_of` says that another may begin."""
        context = self._context
        try:
            last = self._in_turns()
            for one in tuple(self._running):
                self._ended(one, self._left(one))
        finally:
            for one in self._running:  # after an error no engine may remain at work
                one.close(at_once=True)
        few = self._facts.blocks <= MOST_CERTIFIED  # more cannot be evaluated one by one in a reasonable time
        if last is StopReason.ERROR and self._facts.many_blocks and few and not context.over:
            return self._block_by_block()
        reason, notes = context.over or last or StopReason.STALLED, "; ".join(self._notes)
        none = self._infeasible
        return MethodOutcome(reason, len(context.monitor.trace), notes, infeasible=none, doubt=self._doubt)

    def _in_turns(self) -> StopReason | None:
        """Turns until something is proved, the time is over, or all parts have ended; returns why the last
        one ended."""
        context, waiting, last = self._context, self._phases(), None
        while (waiting or self._running) and not context.over and not self._infeasible:
            due = [phase for phase in waiting if self._may_begin(phase)]
            if not due and not self._running:
                break
            solved = context.incumbent.x is not None
            kinds = [phase.proves_now(solved=solved) for phase in due]
            for running in self._running:
                running.proves = running.phase.proves_now(solved=solved)
            share = self._search_share if solved else FIRST_SEARCH_SHARE
            one = next_of(self._running, kinds, share)
            if one is None:
                phase = due[kinds.index(proves_next(self._running, kinds, share))]
                waiting.remove(phase)
                if not self._suits(phase):
                    continue
                one = self._begun(phase)
            outcome = self._turn(one)
            context.hear()
            if outcome is not None:
                last = self._ended(one, outcome)
        return last

    def _phases(self) -> list[Phase]:
        """The parts in the order in which they begin."""
        if self._options.proof is None:
            return list(phases.PHASES)
        proofs = [phase for phase in phases.PHASES if phase.proves and self._suits(phase)]
        chosen = proofs[self._options.proof % len(proofs)] if proofs else None
        return [phase for phase in phases.PHASES if phase is chosen or not phase.proves]

    @property
    def _search_share(self) -> float:
        """The share of searches when a solution is known: none in a process for one proof, which others tell
        better solutions."""
        return SEARCH_SHARE if self._options.proof is None else 0.0

    def _begun(self, phase: Phase) -> _Running:
        """A part before its first turn."""
        clock = Clock()

        def run() -> MethodOutcome:
            with expendable(phase.name):
                try:
                    given = self._given if phase.as_given else self._context
                    given = self._written if phase.as_written and self._written is not None else given
                    return phase.method(self._options).solve(given.in_turns(clock))
                except OutOfTime:  # stopped in the middle of a step
                    return MethodOutcome(self._context.over or StopReason.TIME, 0)
            return MethodOutcome(StopReason.ERROR, 0)

        one = _Running(phase, SolvePart(phase.name), run, clock)
        self._running.append(one)
        return one

    def _turn(self, one: _Running) -> MethodOutcome | None:
        """One turn of a part; its outcome if it ended."""
        context, incumbent, phase = self._context, self._context.incumbent, one.phase
        objective, bound, apart = incumbent.objective, incumbent.bound, incumbent.cutoff - incumbent.bound
        before = one.clock.used
        effort = math.inf if phase.of_blocks or self._options.effort is not None else one.slice
        with context.monitor.turn(one.part, in_words(phase.why, self._facts)):
            outcome: MethodOutcome | None = one.turn(effort)
        closed = 1.0 - (incumbent.cutoff - incumbent.bound) / apart if 0.0 < apart < math.inf else 0.0
        better = worthwhile(objective, incumbent.objective) or (incumbent.bound > bound and apart == math.inf)
        better |= incumbent.x is None and not one.proves  # a first solution counts as a full improvement
        one.judge(closed, better, one.clock.used - before)
        return outcome

    def _left(self, one: _Running) -> MethodOutcome:
        """The outcome of a part that is stopped in the middle of its work."""
        stopped = self._context.budget.stopped is not None  # the user waits, and no further line is printed
        return one.close(at_once=stopped) or MethodOutcome(self._context.over or StopReason.TIME, 0)

    def _ended(self, one: _Running, outcome: MethodOutcome) -> StopReason:
        """Record the outcome of a part."""
        self._running.remove(one)
        one.part.note, one.part.stop_reason = outcome.message or outcome.doubt, outcome.stop_reason
        self._context.monitor.ended(one.part)
        self._notes += [outcome.message] if outcome.message else []
        self._doubt = self._doubt or outcome.doubt
        self._infeasible |= outcome.infeasible
        if outcome.closed:
            self._context.incumbent.settle()
        return outcome.stop_reason

    def _block_by_block(self) -> MethodOutcome:
        """Run all other parts after the one for many equal blocks has failed."""
        return _Plan(replace(self._options, block_prices=False), self._context).run()

    def _may_begin(self, phase: Phase) -> bool:
        """Whether a part may begin: beside the MIP of the whole problem only searches, after its head start.
        With all other proofs at the same time nine such problems of the zoo took 2.6 times as long. What
        improves solutions waits for the first."""
        if phase.needs_solution and self._context.incumbent.x is None:
            return False
        whole = [one for one in self._running if one.phase.as_written]
        return not any(phase.proves or one.clock.used < HEAD_START for one in whole)

    def _suits(self, phase: Phase) -> bool:
        """Whether a part suits the problem; no if the time ends during this test."""
        try:
            return not self._context.over and phase.suits(self._facts)
        except OutOfTime:
            return False

    def _measure(self, context: SolveContext) -> None:
        """Use one width for all inputs, if requested."""
        if self._options.scaling == "none":
            with expendable("scaling"):
                context.keep(scaled_problem, ScaledProblem.of(context, by_range=False))


def in_words(why: str, facts: Facts) -> str:
    """The reason with its facts, for example "4,156 cuts: ..." or "1 sample of ..."."""
    why = COUNT_PATTERN.sub(lambda found: several(getattr(facts, found[1]), found[2]), why)
    named = {name: getattr(facts, name) for _, name, _, _ in Formatter().parse(why) if name}
    return why.format(**{name: f"{fact:,}" if type(fact) is int else fact for name, fact in named.items()})
