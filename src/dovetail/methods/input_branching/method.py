"""Branch and bound over the inputs that all networks read together: exact for few inputs, whatever the depth.

    repeat: take the open boxes of lowest bound, many at a time
            planes below and above every output that costs; rows and planes shrink the box
            multipliers of its LP say which slopes of ReLUs make the planes best; new planes shrink it again
            what is left gets planes of the other outputs, too
            multipliers of the new LP give a bound; reduced costs shrink the box; the rest is split in two

Idea: on a small box a network is nearly linear, and a box of five columns needs few splits to be small. Width
and depth hardly matter, and smooth activations are as good as ReLUs. Weakness: the number of boxes grows with
the number of inputs; beyond ten there is little hope.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from dovetail.bounds.lp_batch.interior_point import InteriorPoint
from dovetail.bounds.lp_batch.linear_programs import Proved, proved
from dovetail.core.amounts import several
from dovetail.core.deadline import require_time
from dovetail.methods.box_points import BoxPoints
from dovetail.methods.input_branching import shrinking
from dovetail.methods.input_branching.plan import Plan, input_plan
from dovetail.methods.input_branching.pool import Pool
from dovetail.methods.input_branching.relaxation import Relaxation, Relaxed
from dovetail.methods.input_branching.splitting import exact, is_open, relaxation_error, scores, split
from dovetail.methods.input_branching.stages import Stages
from dovetail.methods.out_of_reach import out_of_reach
from dovetail.run import work
from dovetail.run.bound import Bound
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.progress import Progress

FEW = 32
"""Boxes that cost as much as one: fewer are split further before their planes are computed."""
MOSTLY = 0.8
"""Boxes of a batch that are split again without a look at their halves, where so many were left open: these
would mostly be open as well."""
BATCH, DEVICE_BATCH = 512, 16384
"""Boxes at a time, at most: larger batches waste boxes that the first ones would have made needless."""
CELLS = 2**22
"""Numbers in the rows of one batch, at most (32 MB)."""
MOST_BOXES = 4_000_000
"""Open boxes: beyond that memory is short and the end is not near."""
PASSES = 3
"""Over the rows of a box: planes bound an output, the host's rows another one, and that its inputs."""
LEAF = 0.05
"""A box whose LP is this close to the truth, as a part of the gap that counts as closed, is not split."""
NEAR = 100.0
"""The same for boxes whose LP is worth solving to the end."""
FIRST_STEPS, LAST_STEPS = 6, 9
"""Of the interior-point method: most boxes are split whatever the last digits of their bound."""
CEILING = 1e-9
"""Of the sizes of all costs: farther above them than sums of thousands of products round."""
HALF = 0.5
"""Of that gap: boxes are closed within it, so that what is proved in the end is within the whole."""
REPORT = 0.5
"""Seconds between two rows of the trace."""
NO_POINT = (
    "proved by input branching over {boxes}: nowhere do the predictors give what rows and bounds ask for"
)


@dataclass(frozen=True)
class InputBranching:
    """Proves a bound, and finds what the search has missed, where networks read few inputs."""

    name = "input-branching"

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Until every box is closed, or a limit is met."""
        if (ended := out_of_reach(context)) is not None:
            return ended
        plan = context.once(input_plan)
        if isinstance(plan, str):
            return MethodOutcome(StopReason.STALLED, 0, f"input branching: {plan}")
        context.monitor.say(f"  proof: input branching over {plan.describe()}")
        with torch.inference_mode(False), torch.no_grad():  # slopes are chosen by their gradients
            return context.once(_tree).run(context)


def _tree(context: SolveContext) -> _Tree:
    """That of a solve: a phase that was cut short goes on where it was (see `SolveContext.once`)."""
    plan = context.once(input_plan)
    assert isinstance(plan, Plan)
    return _Tree(context, plan)


@dataclass(frozen=True, eq=False)
class _Batch:
    """Boxes that are at work."""

    relaxed: Relaxed
    bound: Tensor
    was_open: Tensor
    """Whether a box had anything to split when its planes were computed."""

    def __len__(self) -> int:
        return len(self.bound)

    def take(self, chosen: Tensor) -> _Batch:
        """Some of them, by index."""
        return _Batch(self.relaxed.take(chosen), self.bound[chosen], self.was_open[chosen])


class _Tree:
    """The open boxes of one problem, and what was proved of the others."""

    def __init__(self, context: SolveContext, plan: Plan) -> None:
        self._context = context
        device = context.device or "cpu"
        self._relaxation = r = Relaxation(plan.mip, plan.network, plan.lower, plan.upper, device)
        self._stages = Stages(plan, r, device)
        self._pool = Pool(
            r.root_lower[None],
            r.root_upper[None],
            torch.full((1,), -torch.inf, dtype=torch.float64, device=device),
        )
        self._closed = self._ceiling = _ceiling(r)
        """The lowest bound of boxes that were closed on their own bound."""
        cells = len(self._relaxation.host_rows) + len(self._relaxation.slack)
        most = BATCH if device == "cpu" else DEVICE_BATCH
        self._batch = max(FEW, min(most, CELLS // (cells * self._relaxation.n_columns)))
        self._points = BoxPoints("boxes")
        self._host_columns = plan.mip.n_columns
        self.boxes = 0
        self._reported = time.perf_counter()

    def run(self, context: SolveContext) -> MethodOutcome:
        """The loop, from where it was."""
        self._context, self._progress, pool = context, Progress(context), self._pool
        while len(pool) and not context.over and len(pool) <= MOST_BOXES:
            self._closed = min(self._closed, pool.drop(self._target))
            if not len(pool):
                break
            self._process(*pool.take(self._batch))
            self._report()
        if not len(pool):
            self._closed = min(self._closed, self._target)
            self._raise()
        boxes = several(self.boxes, "box", "boxes")
        if not len(pool) and self._closed >= self._ceiling and context.incumbent.x is None:
            return MethodOutcome(
                StopReason.PROVED, self._progress.done, NO_POINT.format(boxes=boxes), infeasible=True
            )
        message = f"input branching: {boxes}, {f'{len(pool):,} open' if len(pool) else 'closed'}"
        reason = context.over or StopReason.STALLED
        return MethodOutcome(reason, self._progress.done, message, closed=not len(pool))

    # ---- what is to be reached

    @property
    def _cutoff(self) -> float:
        """The best objective, in minimisation form."""
        mip, incumbent = self._context.problem.mip, self._context.incumbent
        return mip.sign * incumbent.objective if incumbent.x is not None else math.inf

    @property
    def _gap(self) -> float:
        """What counts as closed."""
        incumbent = self._context.incumbent
        reference = incumbent.objective if incumbent.x is not None else self._pool.least
        return incumbent.gap.allowed(reference) if math.isfinite(reference) else 0.0

    @property
    def _target(self) -> float:
        """Boxes of this bound are closed: of the best point, or as high as the bound can get."""
        return min(self._cutoff - HALF * self._gap, self._closed)

    # ---- boxes

    def _process(self, lower: Tensor, upper: Tensor, bound: Tensor) -> None:
        relaxation, target, taken = self._relaxation, self._target, len(lower)
        self.boxes += taken
        work.count(nodes=taken)
        self._closed = min(self._closed, target)
        batch = self._bounded(lower, upper, bound)
        if not len(batch):
            return
        proof, points = self._solved(batch.relaxed)
        bound = torch.maximum(batch.bound, proof.bound)
        programs = batch.relaxed.programs
        lower, upper = shrinking.by_reduced_costs(programs, proof, relaxation.integer, target)
        relaxed = batch.relaxed.within(lower, upper)
        kept = ~(bound >= target) & ~(lower > upper).any(1)  # NaN closes no box
        score = scores(relaxation, relaxed, proof, points)
        done = exact(relaxation, relaxed.programs, proof, relaxed.apart, points, LEAF * self._gap)
        leaf = kept & (done | ~batch.was_open)
        self._offer(points, bound, kept, leaf & (bound < target))
        if bool(leaf.any()):
            self._closed = min(self._closed, float(bound[leaf].min()))
        kept &= ~leaf
        times = 2 if int(kept.sum()) > MOSTLY * taken else 1
        self._split(lower[kept], upper[kept], bound[kept], score[kept], times)

    def _bounded(self, lower: Tensor, upper: Tensor, bound: Tensor) -> _Batch:
        """With planes, of the networks that cost first; boxes that these close are left out."""
        first = self._stages.first
        relaxed = first.relaxed(lower, upper)
        batch = self._shrunk(_Batch(relaxed, bound, is_open(self._relaxation, relaxed.programs).any(1)))
        if first.has_slopes and len(batch):
            batch = self._shrunk(self._steeper(batch))
        if self._stages.several and len(batch):
            batch = self._shrunk(replace(batch, relaxed=self._stages.completed(batch.relaxed)))
        return batch

    def _offer(self, points: Tensor, bound: Tensor, kept: Tensor, leaf: Tensor) -> None:
        """The point of the lowest leaf, on which the bound may hang, or of the lowest box."""
        lost = bool(leaf.any())
        best = int(torch.where(leaf if lost else kept, bound, torch.inf).argmin())
        point = points[best, : self._host_columns].cpu().numpy().copy()
        if not np.all(np.isfinite(point)):  # an LP that came to nothing
            return
        if lost:
            self._points.lost(self._context, point, decides=True)
        elif bool(kept.any()):
            self._points.offer(self._context, [point], self.boxes)

    def _shrunk(self, batch: _Batch) -> _Batch:
        """By single rows; boxes that are empty are left out."""
        programs, integer, target = batch.relaxed.programs, self._relaxation.integer, self._target
        for _ in range(PASSES):
            require_time()
            programs = programs.within(*shrinking.by_rows(programs, integer, target))
        kept = ~(programs.lower > programs.upper).any(1) & ~(batch.bound >= target)
        relaxed = batch.relaxed.within(programs.lower, programs.upper)
        return replace(batch, relaxed=relaxed).take(torch.nonzero(kept).ravel())

    def _steeper(self, batch: _Batch) -> _Batch:
        """With slopes that suit the prices of a first LP, where that one does not close the box itself."""
        method = InteriorPoint(batch.relaxed.programs)
        method.run(FIRST_STEPS)
        proof = proved(batch.relaxed.programs, method.multipliers)
        batch = replace(batch, bound=torch.maximum(batch.bound, proof.bound))
        weak = torch.nonzero(batch.bound < self._target).ravel()
        batch = batch.take(weak)
        return replace(batch, relaxed=self._stages.first.steeper(batch.relaxed, proof.take(weak)))

    def _solved(self, relaxed: Relaxed) -> tuple[Proved, Tensor]:
        """What the LPs prove, and their points; only those that may decide something are solved well."""
        programs, target = relaxed.programs, self._target
        method = InteriorPoint(programs)
        method.run(FIRST_STEPS)
        proof = proved(programs, method.multipliers)
        error = relaxation_error(self._relaxation, programs, proof, relaxed.apart, method.points)
        near = error <= NEAR * self._gap
        near |= (proof.bound < target) & (proof.bound + method.gap >= target)
        near |= ~is_open(self._relaxation, programs).any(1)
        chosen = torch.nonzero(near).ravel()
        if len(chosen):
            part = method.take(chosen)
            part.run(LAST_STEPS)
            method.put(chosen, part)
            proof = proved(programs, method.multipliers)
        return proof, method.points

    def _split(self, lower: Tensor, upper: Tensor, bound: Tensor, score: Tensor, times: int) -> None:
        """So many times, or until there are a few."""
        shrunk = score.amax(1) <= 0.0  # to a point, which has better planes than the box it comes from
        self._pool.add(lower[shrunk], upper[shrunk], bound[shrunk])
        lower, upper, bound, score = lower[~shrunk], upper[~shrunk], bound[~shrunk], score[~shrunk]
        while len(lower):
            lower, upper, score = split(lower, upper, score, self._relaxation.integer)
            bound = torch.cat([bound, bound])
            fine = ~(lower > upper).any(1)
            lower, upper, bound, score = lower[fine], upper[fine], bound[fine], score[fine]
            times -= 1
            enough = len(lower) + len(self._pool) >= FEW and times <= 0
            if enough or bool((score.amax(1) <= 0.0).any()):
                break
        self._pool.add(lower, upper, bound)

    # ---- what is proved

    def _raise(self) -> None:
        bound = min(self._pool.least, self._closed)
        if math.isfinite(bound) and bound < self._ceiling:
            self._context.incumbent.raise_bound(Bound(bound, "boxes"))

    def _report(self) -> None:
        self._raise()
        if time.perf_counter() - self._reported > REPORT:
            self._reported = time.perf_counter()
            self._progress.record(self._pool.least)


def _ceiling(relaxation: Relaxation) -> float:
    """More than any point of the first box costs: a box whose bound reaches it is empty."""
    cost, lower, upper = relaxation.cost, relaxation.root_lower, relaxation.root_upper
    parts = torch.maximum(cost * lower, cost * upper)
    return float(parts.sum() + relaxation.offset) + CEILING * (1.0 + float(parts.abs().sum()))
