"""Branching over ReLUs for a problem that is one network over a closed-form set: an adversarial example.

Idea: over a box, a simplex or a ball a node's bound is one pass through the network and one sort, without an
LP; with hundreds of inputs and a few dozen neurons that may change sign a proof takes hundreds of nodes.
Weakness: rows beyond one, integrality and bounds of the output are left out, and deep networks have too many
such neurons. Where the best point of the set violates what is left out, no bound beyond that point can be
proved: the search names it and ends.

Rows and bounds are taken as they are written, as by any exact MIP: a point that misses them by the check's
tolerance may be better than the bound, by as much as their prices times that.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch

from dovetail.bounds.whole_objective import next_step
from dovetail.methods.certified_prices.coupled_problem import CoupledProblem
from dovetail.methods.relu_branching.search import ReluSearch, SearchOptions
from dovetail.methods.relu_branching.targets import is_relu_network
from dovetail.run.bound import Bound, Scope
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.progress import Progress
from dovetail.structure.structure import structure_of

STEPS = 8
"""Adam's, per node: with 5 of them trees of 50 unstable neurons are three times as large."""
CLOSED = 0.25
"""Of the gap that counts as optimal: nodes that come so near to the best point are put aside."""
BATCH = 256
"""Nodes bounded at a time, at most: more waste what the first ones would make needless."""
REPORT = 0.5
"""Seconds from one row of the trace to the next."""
OTHER = 1e-9
"""Relative: a point that is better by less is the same."""


def one_network(context: SolveContext) -> CoupledProblem | None:
    """The problem of a solve as a single component; made once (see `SolveContext.once`)."""
    structure = context.once(structure_of)
    if structure.samples != 1:
        return None
    found = CoupledProblem.of(structure, context.device or "cpu", loose=False)
    if found is None or found.sides.count > 0 or not is_relu_network(found.groups[0].planes.graph):
        return None
    return found


def applies(context: SolveContext) -> bool:
    """Whether the problem is one ReLU network over a set that has a closed form."""
    return context.once(one_network) is not None


@dataclass(frozen=True)
class ReluBranching:
    """Proves a bound, and offers the points that it meets."""

    name = "relu-branching"

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Until every node is closed, or a limit is met."""
        whole = context.once(one_network)
        if whole is None:
            return MethodOutcome(
                StopReason.STALLED, 0, "relu branching: the problem is not one ReLU network over such a set"
            )
        with torch.inference_mode():
            return context.once(_tree).run(context)


def _tree(context: SolveContext) -> _Tree:
    """That of a solve: a phase that was cut short goes on where it was (see `SolveContext.once`)."""
    whole = context.once(one_network)
    assert whole is not None
    return _Tree(context, whole)


class _Tree:
    """The search over one problem."""

    def __init__(self, context: SolveContext, whole: CoupledProblem) -> None:
        self._context, self._whole = context, whole
        self._at = whole.at(np.empty(0))
        self._part = self._at.parts[0]
        self._reported = time.perf_counter()
        self._offered = np.inf
        self._violated = ""
        """What the set leaves out and its best point violates."""
        targets, self._search = self._part.targets, None
        if targets is not None:
            options = SearchOptions(batch=BATCH, steps=STEPS, tolerance=CLOSED * self._gap)
            self._search = ReluSearch(targets, options)

    @property
    def _gap(self) -> float:
        incumbent = self._context.incumbent
        return incumbent.allowed_gap if incumbent.x is not None else 0.0

    def run(self, context: SolveContext) -> MethodOutcome:
        """Go on with the search; what ended it."""
        self._context, self._progress, search = context, Progress(context), self._search
        if search is None:
            self._raise()
            return MethodOutcome(
                context.over or StopReason.STALLED, 0, "relu branching: nothing to branch on"
            )
        context.monitor.say(
            f"  proof: relu branching, {search.unstable} neurons may change sign at the start"
        )
        ended = search.run(context.budget, self._look)
        self._offer()
        self._raise()
        closed = ended == "closed" and not self._violated
        if self._violated:
            ended = f"given up: the set leaves out {self._violated}, which its best point violates"
        message = f"relu branching: {search.nodes:,} nodes, {search.leaves:,} leaves, {ended}"
        reason = context.over or StopReason.STALLED
        return MethodOutcome(reason, self._progress.done, message, closed=closed)

    def _look(self, search: ReluSearch) -> bool:
        """After every round: what is known goes to the incumbent and back."""
        self._offer()
        incumbent = self._context.incumbent
        if incumbent.x is not None:
            mip = self._context.problem.mip
            value = mip.sign * incumbent.objective - self._at.constant - float(self._part.base[0])
            search.know(torch.tensor([value]))
            search.tolerance = CLOSED * self._gap
        if time.perf_counter() - self._reported > REPORT:
            self._raise()
        return bool(self._violated) or self._context.over is not None

    def _offer(self) -> None:
        """The best point met, if it is new."""
        search, context = self._search, self._context
        assert search is not None
        best = float(search.best[0])
        if not search.met[0] or best >= self._offered - OTHER * (1.0 + abs(best)):
            return
        self._offered = best
        mip = context.problem.mip
        z = context.incumbent.x
        z = np.clip(np.zeros(mip.n_columns), mip.lower, mip.upper) if z is None else z.copy()
        one = self._part.group.sets[0]
        z[one.inputs], z[one.columns] = one.values(search.best_moves[0].cpu().numpy(), mip)
        context.incumbent.offer(z, "branching")
        self._violated = ""
        if self._beats_incumbent(best):
            self._violated = one.violated(self._whole.mip, context.problem.predict(z))

    def _beats_incumbent(self, value: float) -> bool:
        """Whether a point of this value would be better than the incumbent by more than the gap."""
        incumbent, mip = self._context.incumbent, self._context.problem.mip
        if incumbent.x is None:
            return True
        objective = value + self._at.constant + float(self._part.base[0])
        return mip.sign * incumbent.objective - objective > self._gap

    def _raise(self) -> None:
        """What is proved so far; the best point itself is no proof of more than its own objective."""
        self._reported = time.perf_counter()
        search, incumbent, mip = self._search, self._context.incumbent, self._context.problem.mip
        bound = self._at.bound([None if search is None else search.lower.cpu().numpy()])
        bound = next_step(self._whole.mip, self._whole.step, bound)
        if incumbent.x is not None:
            bound = min(bound, mip.sign * incumbent.objective)
        incumbent.raise_bound(Bound(bound, "signs", Scope.WRITTEN))
        self._progress.record(bound)
