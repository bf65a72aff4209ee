"""The whole problem as one MIP, networks and all, for HiGHS and, where installed, SCIP: exact, with a bound.

    rewrite: networks as rows (tables, or neurons with big-M)
    points:  the MIP whose rows keep margins, so that what it finds passes the check
    bound:   the MIP whose rows hold at every point that the networks can give; the same one where that is no
             difference. Once a solution is known, only solutions that cost no more matter: neurons are
             tightened under that cutoff (`branching/root.py`), and the engine prunes by it
    turns:   HiGHS works first. What it does not solve in a few seconds, SCIP tries beside it. If the two MIPs
             differ, the one for points begins as late, unless no solution is known

Idea: where it is possible at all, one exact MIP beats any search, and proves the optimum. Weakness: rows for
every neuron that may change sign; beyond a few hundred of them engines find nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from dovetail.branching.confirmed import NODES, Confirmed, EngineSettings, has_no_point, hidden, stands
from dovetail.branching.mip_tree import branch_and_bound
from dovetail.branching.root import NothingLeft
from dovetail.core.errors import EngineError
from dovetail.core.mip import TOLERANCE
from dovetail.methods.branching_model import tightened
from dovetail.methods.elastic import nearest_point
from dovetail.mip.answers import installed, loaded
from dovetail.reformulations.reformulated import Reformulated, reformulate
from dovetail.reformulations.relu_big_m import ReluBigM, written_out
from dovetail.run.bound import Bound, Scope, Support
from dovetail.run.budget import Budget, StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.engine import Heard, MipAnswer, MipSession, MipStatus, Quadratic
from dovetail.run.failures import expendable
from dovetail.run.progress import Progress
from dovetail.run.turns import BEGIN, race
from dovetail.structure.boxes import tightened_box
from dovetail.structure.relu_layers import ReluLayers, relu_layers
from dovetail.structure.structure import structure_of

TIGHTEN_SHARE = 0.12
"""Share of the time for LPs that reduce the proof's MIP."""
SECOND_MIP = 20_000_000
"""Microseconds of effort of a MIP before a second one begins: SCIP after HiGHS, and the MIP for points after
the one for bounds if a solution is known. Over 30 s and 44 problems, with equal turns from the beginning the
mean distance of bounds was 19.4 % instead of 19.0, of incumbents 3.6 % instead of 3.1; with 5e6 it was 19.4 %
and 3.7 %. Alone HiGHS proves as many of 48 such MIPs in 20 s as SCIP, two after more than twice the time."""
REFUTE_SHARE = 0.5
"""Share of the time left for proving infeasibility after an engine finds no point."""
NO_PROOF = "the rounding of the networks is unknown: their layers give no proved bound"
NO_POINT = (
    "most likely there is no solution: HiGHS finds none for the problem with the predictors written "
    "out, within its tolerances, which is no proof"
)
EVERY_COMBINATION = (
    "proved with every combination of the predictors' inputs in a table: every combination violates a "
    "constraint or bound"
)
EVERY_PATTERN = (
    "proved with the predictors written out as constraints: branching over their binaries and the integers "
    "leaves no solution"
)
DECIDED = (MipStatus.OPTIMAL, MipStatus.INFEASIBLE)

Asked = tuple[MipAnswer | None, str]
"""An answer, or None with the reason."""
_Session = tuple[MipSession, Quadratic, Reformulated]
"""An engine with a program, its objective, and the owner of the program."""


@dataclass(frozen=True)
class ExactMip:
    """Solves a problem whose networks can be written as constraints, as one MIP."""

    written: Reformulated | None = None
    """The problem as one MIP, if known; None: that of `whole_form`, otherwise ReLU networks are written
    out."""
    source: str = "tables"
    """The source of points and bounds in the log, if the MIP is given."""

    name = "exact-mip"

    def solve(self, context: SolveContext) -> MethodOutcome:
        """One MIP for points and bound; if they need different rows, one for each."""
        run = _WholeMip.of(context, self)
        if run is None:
            return MethodOutcome(StopReason.STALLED, 0, "not all networks can be written as constraints")
        return run.ended(run.asked(context.budget))


def whole_form(context: SolveContext) -> ExactMip | None:
    """All predictors as tables or rows, stored by the part that made this form (`SolveContext.keep`)."""
    return None


@dataclass(eq=False)
class _WholeMip:
    """One problem written as a MIP."""

    context: SolveContext
    written: Reformulated
    layers: ReluLayers | None
    """The layers that were written; None: the MIP was given."""
    source: str = "exact"
    refuted: str = ""
    """The proof of infeasibility in words; "" without one."""
    doubted: bool = False
    """Whether an engine found no point, which is no proof."""
    closed: bool = False
    """Whether an engine finished the program for bounds."""
    _proved_to: float = math.inf
    """The cutoff up to which points are excluded by bounds."""
    _open: float | None = None
    """A bound that our own tree failed to prove; the tree does not try this bound or a higher one again."""
    _tight: Reformulated | None = None
    """The program for bounds, for points up to the first cutoff."""
    _sessions: dict[tuple[str, int], _Session] = field(default_factory=dict)
    """Sessions by engine and program."""

    @classmethod
    def of(cls, context: SolveContext, method: ExactMip) -> _WholeMip | None:
        """None if a network cannot be written as constraints."""
        method = context.once(whole_form) or method
        if method.written is not None:
            return cls(context, method.written, None, method.source)
        structure = context.once(structure_of)
        layers = structure.relu_layers
        if layers is None:
            return None
        given = Reformulated.start(context.problem, structure.tight_box, context.relaxed)
        return cls(context, reformulate(given, (ReluBigM(layers),)), layers)

    def ended(self, message: str) -> MethodOutcome:
        """Messages for the end of the solve."""
        context, rows = self.context, len(self.context.monitor.trace)
        if self.refuted:
            return MethodOutcome(StopReason.PROVED, rows, self.refuted, infeasible=True)
        doubt = NO_POINT if self.doubted else ""
        reason = context.over or StopReason.STALLED
        return MethodOutcome(reason, rows, message, closed=self.closed, doubt=doubt)

    def asked(self, budget: Budget) -> str:
        """Solutions and a bound, as far as time allows; returns why there is no bound."""
        if not self.written.proves:
            self.points(budget)
            return NO_PROOF
        if not self.apart:
            return self.bound(budget)
        # the relaxation for a bound may accept a point that violates a row: it serves for a bound only
        incumbent = self.context.incumbent
        both, begin = (self.points, self.bound), BEGIN
        if incumbent.x is not None:  # the points of the bound's MIP may pass the check
            both, begin = both[::-1], SECOND_MIP
        troubles = race(both, budget, lambda trouble: False, begin=begin)
        if incumbent.cutoff < self._proved_to and budget.ended is None:
            return self.bound(budget)
        return "; ".join(filter(None, troubles))

    @property
    def apart(self) -> bool:
        """Whether points and bounds need a MIP each."""
        return self.written.relaxed is not None

    def points(self, budget: Budget) -> str:
        """Search better points."""
        heard = partial(self._point_met, self.written)
        answer, _ = self._asked(self.written, budget, self.context.incumbent.cutoff, heard)
        if answer is not None:
            self._record(answer, answer.x, self.written)
        return ""

    def _point_met(self, written: Reformulated, answer: MipAnswer) -> None:
        """Offer a point while an engine continues."""
        if answer.x is not None and answer.value < self.context.incumbent.cutoff:
            self._record(answer, answer.x, written)

    def bound(self, budget: Budget) -> str:
        """Raise the bound, and offer points of the problem; returns why this failed, or ""."""
        context, cutoff = self.context, self.context.incumbent.cutoff
        try:
            if self._tight is None:
                whole = context.budget
                self._tight = self._tightened(cutoff, whole.part(TIGHTEN_SHARE * whole.left))
        except NothingLeft:
            context.incumbent.raise_bound(Bound(cutoff, "tightening", Scope.WRITTEN))
            return ""
        written, self._proved_to = self._tight, cutoff
        mip = written.problem.mip.minimised().as_checked()

        def heard(answer: MipAnswer) -> None:
            incumbent = context.incumbent
            self._point_met(written, answer)
            if answer.bound <= incumbent.bound:
                return
            word = min(answer.bound - hidden(mip, answer.x), cutoff)
            found = Confirmed(word, support=Support.ENGINE)
            if word >= incumbent.cutoff - incumbent.allowed_gap:  # the engine would be stopped then
                ended = replace(answer, status=MipStatus.OPTIMAL)
                found = self._confirmed(ended, written, context.budget, incumbent.cutoff)
            incumbent.raise_bound(Bound(found.bound, self.source, Scope.WRITTEN, found.support))

        answer, trouble = self._asked(written, budget, cutoff, heard)
        if answer is None:
            return trouble
        self._point_met(written, answer)
        found = self._confirmed(answer, written, context.budget, cutoff)
        context.incumbent.raise_bound(Bound(found.bound, self.source, Scope.WRITTEN, found.support))
        self._record(answer, None if found.x is answer.x else found.x, written)
        self.closed = answer.exact
        if answer.status is MipStatus.INFEASIBLE and context.incumbent.x is None:
            self.doubted = True
            self._after_no_point(context.budget)
        return ""

    def _confirmed(
        self, answer: MipAnswer, written: Reformulated, budget: Budget, cutoff: float
    ) -> Confirmed:
        """The confirmed part of an answer; the engine's own bound after a limit, or if our own tree failed
        before."""
        context, mip = self.context, written.problem.mip.minimised().as_checked()
        settings = EngineSettings(context.seed, context.threads, context.incumbent.gap)
        asked = min(answer.value, cutoff)
        failed = answer.status is MipStatus.OPTIMAL and self._open is not None and asked >= self._open
        with context.stopwatch.measure("engine"):
            if answer.status is MipStatus.LIMIT or failed:
                word = answer.bound - hidden(mip, answer.x)
                return Confirmed(min(word, cutoff), answer.x, support=Support.ENGINE)
            found = stands(mip, answer, settings, budget, cutoff)
        if found.support is Support.ENGINE:
            self._open = asked - 0.5 * context.incumbent.gap.allowed(asked)
        return found

    def _after_no_point(self, budget: Budget) -> None:
        """After an engine finds no point: offer the nearest to the tables, or prove infeasibility."""
        context, written = self.context, self.written.for_bounds
        with context.stopwatch.measure("engine"):
            if self.source == "tables":
                host, mip = context.problem, written.problem.mip.minimised()
                x = nearest_point(mip, host.mip.n_rows, host.outputs, budget, seed=context.seed)
                if x is not None:
                    context.incumbent.offer(written.restrict(x), self.source)
            if context.incumbent.x is None:
                self._refute(budget.part(REFUTE_SHARE * budget.left))

    def _refute(self, budget: Budget) -> None:
        """Prove infeasibility. For tables the agreement of several engines is enough; for networks and
        trees, whose rows have large numbers, only our own tree."""
        context = self.context
        settings = EngineSettings(context.seed, context.threads)
        if self.source == "tables":
            mip = self.written.for_bounds.problem.mip.minimised()
            if _tables_are_complete(context) and has_no_point(mip, settings, budget):
                self.refuted = EVERY_COMBINATION
            return
        written = self.written.for_bounds if self.layers is None else self._written_loosely(budget)
        if written is None:
            return
        mip = written.problem.mip.minimised().loosened()
        proof = branch_and_bound(
            replace(mip, cost=np.zeros(mip.n_columns), offset=0.0), budget,
            nodes=NODES, seed=context.seed, threads=context.threads,
        )  # fmt: skip
        if proof.bound == np.inf:
            self.refuted = EVERY_PATTERN

    def _written_loosely(self, budget: Budget) -> Reformulated | None:
        """The networks written out over every point that the check accepts; None if not possible."""
        context, loose = self.context, self.context.once(structure_of).loose
        part = budget.part(TIGHTEN_SHARE * budget.left)
        box = tightened_box(loose, part, seed=context.seed, threads=context.threads)
        layers = relu_layers(loose, box)
        if layers is None or not layers.proves:
            return None
        return written_out(layers, Reformulated.start(loose, box))

    def _tightened(self, cutoff: float, budget: Budget) -> Reformulated:
        """The program for bounds, for points up to the cutoff."""
        context, layers = self.context, self.layers
        if layers is None or cutoff == np.inf or layers.unstable == 0:
            return self.written.for_bounds
        given = self.written.for_bounds.previous
        assert given is not None
        with context.stopwatch.measure("engine"):
            box = context.once(structure_of).tight_box
            tight = tightened(given.problem, layers, box, cutoff, context, budget)
        context.monitor.say(
            f"  proof: {layers.unstable} neurons may change sign, {tight.unstable} in better solutions"
        )
        return written_out(tight, given)

    def _record(self, answer: MipAnswer, x: np.ndarray | None, written: Reformulated) -> None:
        """Offer a point and record the solve."""
        progress, objective = Progress(self.context), float("nan")
        if x is not None:
            objective = self.context.incumbent.offer(written.restrict(x), self.source)
        progress.record(answer.value, objective, exact=answer.exact)

    def _asked(self, written: Reformulated, budget: Budget, cutoff: float, heard: Heard) -> Asked:
        """The engines in turns: the result when one has decided or the time is over, or why there is none."""
        said: dict[str, Asked] = {}

        def ask(engine: str, budget: Budget) -> bool:
            said[engine] = answer, _ = self._engine_answer(engine, written, budget, cutoff, heard)
            return answer is not None and answer.status in DECIDED and _answer_counts(engine, answer)

        race([partial(ask, engine) for engine in installed()], budget, bool, begin=SECOND_MIP)
        answers = {engine: answer for engine, (answer, _) in said.items()}
        troubles = [trouble for _, trouble in said.values() if trouble]
        return _better(answers.get("highs"), answers.get("scip")), "; ".join(troubles)

    def _engine_answer(
        self, engine: str, written: Reformulated, budget: Budget, cutoff: float, heard: Heard
    ) -> Asked:
        """One engine's answer, or why there is none."""
        context, known, key = self.context, self.context.incumbent.x, (engine, id(written))

        def count(answer: MipAnswer) -> None:
            if _answer_counts(engine, answer):
                heard(answer)

        with expendable(f"MIP of the whole problem by {engine}", EngineError):
            if key not in self._sessions:
                mip = written.problem.mip.minimised().as_checked()
                session = loaded(engine, mip, seed=context.seed, threads=context.threads)
                self._sessions[key] = session, Quadratic.linear(mip.cost, mip.offset), written
            session, objective, _ = self._sessions[key]
            start = None if known is None else written.lift(known)
            if engine == "scip" and known is not None:  # the engine needs a feasible start (see `_better`)
                cutoff += context.incumbent.allowed_gap
            gap = context.incumbent.gap.of_engine
            with context.stopwatch.measure("engine"):
                answer = session.solve(
                    objective, budget=budget, start=start, gap=gap, cutoff=cutoff, heard=count
                )
            return answer, ""
        return None, "the MIP of the whole problem failed"


def _tables_are_complete(context: SolveContext) -> bool:
    """Whether tables contain every combination that the check may accept: they were made from the rows as
    written, and an integer point within the tolerance may be missing."""
    problem, listed = context.problem, context.once(structure_of).tight_box
    loose = tightened_box(
        problem.derived(problem.mip.loosened(), problem.blocks), context.budget,
        seed=context.seed, threads=context.threads,
    )  # fmt: skip
    read = np.setdiff1d(np.flatnonzero(problem.mip.integer), problem.outputs)  # some determine inputs
    least, most = np.ceil(loose.lower[read] - TOLERANCE), np.floor(loose.upper[read] + TOLERANCE)
    return bool(np.all(least >= listed.lower[read]) and np.all(most <= listed.upper[read]))


def _answer_counts(engine: str, answer: MipAnswer) -> bool:
    """Whether SCIP's answer counts: without a solution it does not, because SCIP was seen to call feasible
    problems infeasible."""
    return engine != "scip" or answer.x is not None


def _better(highs: MipAnswer | None, scip: MipAnswer | None) -> MipAnswer | None:
    """SCIP's answer if it is complete and counts; otherwise the better point of the two. HiGHS's bound is
    kept."""
    if scip is None or not _answer_counts("scip", scip):
        return highs
    if highs is None:
        return scip
    better = scip if scip.exact or scip.value < highs.value else highs
    return replace(better, bound=max(scip.bound, highs.bound))
