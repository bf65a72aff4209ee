"""The default: looks at what the problem has, and runs the methods that are good at it, one after the other.

Limits on probabilities become rows on their logits, and blocks whose inputs take few values tables; where no
network is left, the problem is one exact MIP. Everything else follows the table in `phases.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from string import Formatter

from dovetail.bounds.box import propagate
from dovetail.core.amounts import several
from dovetail.linearised.scaled_problem import ScaledProblem, scaled_problem
from dovetail.methods import phases
from dovetail.methods.column_generation import ColumnGeneration
from dovetail.methods.exact_mip import ExactMip
from dovetail.methods.facts import MANY_BLOCKS, AutoOptions, Facts
from dovetail.methods.out_of_reach import out_of_reach
from dovetail.methods.phases import MOST_CERTIFIED, Phase, planned, share_in_words
from dovetail.methods.search import Search, as_given
from dovetail.reformulations.absolute_values import AbsoluteValues
from dovetail.reformulations.chained_networks import ChainedNetworks
from dovetail.reformulations.derived_outputs import TakenApart
from dovetail.reformulations.indicator_products import IndicatorProducts
from dovetail.reformulations.logit_rows import LogitRows, may_have_logits
from dovetail.reformulations.one_order import OneOrder
from dovetail.reformulations.presolve import Presolve
from dovetail.reformulations.reformulated import Reformulated, context_of, reformulate
from dovetail.reformulations.tables import Tables, may_have_tables
from dovetail.reformulations.tree_rows import TreeRows, may_have_tree_rows
from dovetail.run.budget import OutOfTime, StopReason
from dovetail.run.context import Archive, Method, MethodOutcome, SolveContext
from dovetail.run.failures import expendable
from dovetail.structure.structure import structure_of

TABLES_SHARE = 0.25
"""Of the time left, for the answers of long tables: the MIP over them takes some, and a search the rest."""


COUNTED = re.compile(r"\{(\w+)\} (\w+)s(?=:| of)")
"""A number of things that no verb follows, which would have to change with it."""


@dataclass(frozen=True)
class Auto(AutoOptions):
    """The default method; its options say what may be used, and how much of it.

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
        """Logits and tables first; what is left goes to the methods that suit it.

        A reformulation that fails is left out, and so is the MIP that it was made for.
        """
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
        """The problem in the form that it has now."""
        if self.exact:
            with expendable("reach of the predictors"):
                if (ended := out_of_reach(context)) is not None:
                    return ended
            with expendable("rows on logits"):
                context = _by_logits(context)
        as_given, doubt = context, ""
        with expendable("trees as rows"):
            context = _by_tree_rows(context)
            if not context.problem.blocks:
                outcome = _without_blocks(context)
                doubt = outcome.doubt
                if outcome.infeasible or context.over:
                    return outcome
        if not context.problem.blocks:
            return _Plan(self, as_given, doubt).run()
        if self.tables:
            with expendable("tables"):
                context, only_tables = _by_tables(context)
                if only_tables is not None:
                    doubt = only_tables.doubt
                    if not doubt or context.over or context.incumbent.x is not None:
                        return only_tables
        return _Plan(self, context, doubt, as_given).run()


def _say_what_is_not_read(context: SolveContext) -> None:
    """Why trees are searched like any function, and have no bound."""
    for block in context.problem.blocks:
        reason = block.description.why_no_trees
        if reason:
            context.monitor.fact("no trees", f"{block.name}: {reason} They are searched without a bound.")


def _presolved(context: SolveContext) -> SolveContext:
    """The solve with the problem in its simplest form, where it is written in another one.

    Very many blocks are left as they are stated: a template says itself what is the same in all of them.
    """
    if context.once(structure_of).samples > MANY_BLOCKS:
        return context
    form = Reformulated.start(context.problem, context.once(structure_of).tight_box, context.relaxed)
    notes, ordered = [], None
    for step in (TakenApart(), OneOrder(), Presolve(), ChainedNetworks(), AbsoluteValues(), OneOrder()):
        if isinstance(step, OneOrder) and form is ordered:
            continue  # nothing has changed since
        further = reformulate(form, (step,))
        notes += [further.note] if further is not form and further.note else []
        form = further
        ordered = form if isinstance(step, OneOrder) else ordered
    if notes:
        context.monitor.fact("presolve", "; ".join(notes))
    return context_of(context, form)


def _by_logits(context: SolveContext) -> SolveContext:
    """The solve with limits on probabilities as rows on their logits, where there are such."""
    if not may_have_logits(context.problem):
        return context
    given = Reformulated.start(context.problem, context.once(structure_of).tight_box, context.relaxed)
    rewritten = reformulate(given, (LogitRows(),))
    if rewritten.note:
        context.monitor.say(f"  logits: {rewritten.note}")
    return context_of(context, rewritten)


def _by_tree_rows(context: SolveContext) -> SolveContext:
    """The solve with trees beside networks, or behind each other, as rows, where they can be."""
    if not may_have_tree_rows(context.problem):
        return context
    given = Reformulated.start(context.problem, context.once(structure_of).tight_box, context.relaxed)
    rewritten = reformulate(given, (TreeRows(context.once(structure_of).loose_rows_box),))
    if rewritten.note:
        context.monitor.fact("trees", rewritten.note)
    return context_of(context, rewritten)


def _without_blocks(context: SolveContext) -> MethodOutcome:
    """Trees that read each other, all of them written out."""
    box = propagate((context.relaxed or context.problem).mip.minimised())  # holds the points of both
    context.monitor.fact("plan", "one exact MIP: all trees became rows")
    with context.monitor.part("exact MIP of trees") as part:
        written = Reformulated.start(context.problem, box, context.relaxed)
        outcome = ExactMip(written, source="splits").solve(context)
        part.note, part.stop_reason = outcome.message, outcome.stop_reason
    return outcome


def _by_tables(context: SolveContext) -> tuple[SolveContext, MethodOutcome | None]:
    """The solve with tables in place of networks, where they can be; its outcome where no network is left."""
    if not may_have_tables(context.problem):
        return context, None
    given = Reformulated.start(context.problem, context.once(structure_of).tight_box, context.relaxed)
    seconds = TABLES_SHARE * context.budget.left
    tables = reformulate(given, (Tables(seconds, lambda why: context.monitor.fact("no table", why)),))
    if tables.note:
        context.monitor.fact("tables", tables.note)
    if tables.problem.blocks:
        return context_of(context, tables), None
    context.monitor.fact("plan", "one exact MIP: all networks became tables")
    with context.monitor.part("exact MIP of tables") as part:
        outcome = ExactMip(reformulate(tables, (IndicatorProducts(),))).solve(context)
        part.note, part.stop_reason = outcome.message or outcome.doubt, outcome.stop_reason
    said = outcome.message or "all networks became tables; the MIP is exact"
    return context, replace(outcome, message=said)


class _Plan:
    """The phases that apply to one problem."""

    def __init__(
        self, options: Auto, context: SolveContext, doubt: str = "", given: SolveContext | None = None
    ) -> None:
        self._options, self._notes = options, list[str]()
        self._doubt = doubt
        """Why there may be no point."""
        self._archive = Archive()
        self._context = replace(context, archive=self._archive)
        self._given = self._context if given is None or given is context else given
        """Before trees became rows."""
        if options.scaling == "none":
            with expendable("scaling"):
                self._context.keep(scaled_problem, ScaledProblem.of(self._context, by_range=False))
        self._context.keep(as_given, self._given)
        self._facts = Facts((self._context, options), trees_beside_others=self._trees_beside_others())
        self._infeasible = False
        """Whether it is proved that there is no point."""

    def _trees_beside_others(self) -> bool:
        """Whether trees stand beside other predictors, or behind each other, and a bound is asked for."""
        structure = self._given.once(structure_of)
        with expendable("trees beside others"):
            return self._options.exact and structure.tree_blocks is not None and structure.ensembles is None
        return False

    def run(self) -> MethodOutcome:
        """Until something is proved, the time is over, or no phase has anything left to do.

        A phase whose share of the time was over goes on, in turn with the others, after the last one; not one
        that had all of it, for which there is at most a moment left.
        """
        context, last, cut = self._context, None, False
        if not context.monitor.silent:
            steps = [f"{phase.name} ({share_in_words(phase.share)})" for phase in planned(self._facts)]
            context.monitor.fact("plan", "; ".join(steps) + "; then the unfinished parts, in turn")
        waiting, again = [(phase, phase.share) for phase in phases.PHASES], False
        while waiting and not context.over and not self._infeasible:
            cut_short = []
            for number, (phase, share) in enumerate(waiting):
                if not self._suits(phase) or self._left_out(phase, share):
                    continue
                self._archive.keeps = any(
                    later.needs_points and self._suits(later) for later, _ in waiting[number + 1 :]
                )
                outcome = self._solved(phase, share, again)
                context.hear()
                if outcome is None:
                    last = last or StopReason.ERROR
                else:
                    last = outcome.stop_reason
                    cut = last is StopReason.TIME and share < 1.0
                    if outcome.closed:
                        context.incumbent.settle()
                    self._infeasible |= outcome.infeasible
                    cut_short += [phase] if cut or outcome.yielded else []
                if context.over or self._infeasible:
                    break
            waiting = [(phase, 1.0 / (len(cut_short) - turn)) for turn, phase in enumerate(cut_short)]
            again = True
        few = self._facts.blocks <= MOST_CERTIFIED  # more are not looked at one by one in any time there is
        if last is StopReason.ERROR and self._facts.many_blocks and few and not context.over:
            return self._block_by_block()
        # a phase may have had its share of the time, and then have been left out: the time was not over
        reason = context.over or (StopReason.STALLED if last is None or cut else last)
        notes, none = "; ".join(self._notes), self._infeasible
        return MethodOutcome(reason, len(context.monitor.trace), notes, infeasible=none, doubt=self._doubt)

    def _block_by_block(self) -> MethodOutcome:
        """With all that does not take many equal blocks at once, which has failed."""
        return _Plan(replace(self._options, template_pricing=False), self._context).run()

    def _suits(self, phase: Phase) -> bool:
        """Whether a phase has its turn: not where the time ends while that is found out."""
        try:
            return not self._context.over and phase.suits(self._facts)
        except OutOfTime:
            return False

    def _left_out(self, phase: Phase, share: float) -> bool:
        """Whether a phase has nothing to do, or not the time for it; that is said."""
        mine = share * self._context.budget.left
        if mine < phase.least_seconds:
            self._note(
                f"{phase.name} left out: it takes {phase.least_seconds:g} s or more, and would have "
                f"{mine:.1f} s"
            )
            return True
        return False

    def _note(self, text: str) -> None:
        """For the log and the result; once, though a number in it may have changed."""
        begins = text.split(":")[0]
        if not any(note.startswith(begins) for note in self._notes):
            self._notes.append(text)
            self._context.monitor.say(f"   {text}")

    def _solved(self, phase: Phase, share: float, again: bool) -> MethodOutcome | None:
        """One phase, with a share of the time left; None where it failed."""
        why, outcome = in_words(phase.why, self._facts), None
        given = self._given if phase.as_given else self._context
        with expendable(phase.name), self._context.monitor.part(phase.name, why) as part:
            part.stop_reason = StopReason.ERROR  # unless it comes to another end
            try:
                outcome = self._method(phase, again).solve(given.part(share))
            except OutOfTime:  # in the middle of a step: what the phases before it had to say is kept
                outcome = MethodOutcome(self._context.over or StopReason.TIME, 0)
            part.note, part.stop_reason = outcome.message or outcome.doubt, outcome.stop_reason
        if outcome is not None:
            self._notes += [outcome.message] if outcome.message else []
            self._doubt = self._doubt or outcome.doubt
        return outcome

    def _method(self, phase: Phase, again: bool) -> Method:
        """What a phase runs. One that goes on leaves its time to nobody: the others have had theirs."""
        method = phase.method(self._options)
        if again and isinstance(method, (ColumnGeneration, Search)):
            return replace(method, yields=False)
        return method


def in_words(why: str, facts: Facts) -> str:
    """The reason with its facts: "4,156 cuts: ...", "1 sample of ..."."""
    why = COUNTED.sub(lambda found: several(getattr(facts, found[1]), found[2]), why)
    named = {name: getattr(facts, name) for _, name, _, _ in Formatter().parse(why) if name}
    return why.format(**{name: f"{fact:,}" if type(fact) is int else fact for name, fact in named.items()})
