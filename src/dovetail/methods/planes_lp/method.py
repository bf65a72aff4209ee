"""A bound for many networks of few inputs each: the host's LP, with planes in place of the networks.

    repeat
        cells:   each network's box of inputs in cells, planes on each; what cannot beat the best point goes
        LP:      the host without integers, boxes around what is left, and rows of single networks that the
                 LP's point violates and all values on their cells meet, as long as there are any
        boxes:   least and largest value of each input over this LP, for points up to the best one; the
                 multipliers are kept, and say more whenever boxes have shrunk (`implied_bounds`)
    after the first time, the same for points that are better than the best one by a part of the gap: either
    there are none, or the part was too large

Idea: no neuron is written out, so that depth does not matter; where thousands of integers reach the networks
through a few sums, the LP loses next to nothing by forgetting them. Weakness: the envelope of a whole box is
all that is known of a network; where it is far from the network, and boxes do not shrink, that is the end.

Boxes hold for points up to a cutoff, and what is claimed with them is never above it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import narrow, propagate
from dovetail.bounds.safe_lp import LpAnswer, SafeLp
from dovetail.branching.network_cells import LITTLE, PATIENCE, WIDE, NetworkCells
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.mip import SMALLEST, Mip
from dovetail.methods.cutoff_tightening import NothingLeft, with_cutoff
from dovetail.methods.planes_lp.implied_bounds import Implied, ImpliedBounds
from dovetail.methods.planes_lp.plan import PlanesPlan, Sample, planes_plan
from dovetail.run.bound import Bound
from dovetail.run.budget import Budget, StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.engine import MipStatus
from dovetail.run.progress import Progress

CUT_ROUNDS = 20
"""LPs with new cuts over the same cells; later ones move little."""
WORTH = 0.02
"""Rounds go on while the gap or the boxes shrink by this part."""
CUT_AGAIN = 0.03
"""Boxes that lost this part of their widths to dropped cells are cut again: that takes no LP, and multipliers
of earlier ones shrink other boxes on the way."""
TRIAL = 8
"""LPs for boxes go on while the last so many boxes shrank by `WORTH`."""
SHRINK_SHARE = 0.4
"""Of the time left, for LPs for boxes: the next cells and cuts need some too."""
FIRST_AIM, LEAST_AIM = 0.5, 0.05
"""Of the gap: what is asked for once there is one; half as much where that brings no more, and twice as much
where it is proved. Up to the best point boxes shrink slowly, or not at all (dispatch)."""
OBJECTIVE = -1
"""In place of a column's number: the multipliers of the host's own LP."""
PAD = 1e-9
"""Relative to 1 + the bound: boxes from LPs are no tighter than that."""
NO_POINT = (
    "proved by planes over cells of the networks' inputs: no cell can give what rows and bounds ask for"
)


@dataclass(frozen=True)
class PlanesLp:
    """The bound as a phase."""

    name = "planes-lp"

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Cells, cuts and boxes in turn, while that helps."""
        run, progress = context.once(cell_planes), Progress(context)
        if run is None:
            return MethodOutcome(StopReason.STALLED, 0, "networks that read more than a few inputs each")
        context.monitor.say(f"  proof: planes over cells of {run.count} networks, in the host's LP")
        run.context = context
        try:
            while not context.over and run.advance():
                progress.record(run.best)
        except UnsupportedError as reason:
            return MethodOutcome(StopReason.STALLED, progress.done, f"planes LP: {reason}")
        progress.record(run.best)
        if run.empty:
            return MethodOutcome(StopReason.PROVED, progress.done, NO_POINT, infeasible=True)
        bound = context.problem.mip.sign * run.best
        proved = f"bound {bound:.6g}" if np.isfinite(bound) else "no bound"
        message = f"planes LP: {proved} after {run.rounds} rounds"
        return MethodOutcome(context.over or StopReason.STALLED, progress.done, message)


def cell_planes(context: SolveContext) -> CellPlanes | None:
    """Those of a solve: who asks next goes on with them (see `SolveContext.once`)."""
    plan = context.once(planes_plan)
    return None if plan is None else CellPlanes(context, plan)


class CellPlanes:
    """The boxes, cells and LP of one problem."""

    def __init__(self, context: SolveContext, plan: PlanesPlan) -> None:
        self.context, self._plan, self._mip = context, plan, plan.mip
        self._lower, self._upper = plan.box.lower.copy(), plan.box.upper.copy()
        self.best, self.rounds, self.cutoff = -np.inf, 0, np.inf
        self.empty = False
        """Whether it is proved that no point is left, whatever it costs."""
        self._implied = ImpliedBounds(cutoff_row=self._mip.n_rows)
        self._aim, self._kept = 0.0, (self._lower, self._upper, self._implied)

    @property
    def count(self) -> int:
        """Samples of networks."""
        return self._plan.count

    def box(self, context: SolveContext) -> tuple[FloatArray, FloatArray]:
        """Of all points that are better than the best one: rounds, while they help, if there were none."""
        self.context = context
        try:
            while self._aim == 0.0 and not context.over and self.round():
                pass
        except NothingLeft:  # the claim proves it, and the box in the making may be none
            self.claim(self.cutoff)
            return self._plan.box.lower, self._plan.box.upper
        except UnsupportedError:
            pass
        return self._kept[:2] if self._aim > 0.0 else (self._lower, self._upper)

    def claim(self, bound: float) -> None:
        """Of all points, the smaller of this and the cutoff is a bound; without either nothing is claimed."""
        proved = min(bound, self.cutoff)
        if proved < np.inf:
            self.best = max(self.best, proved)
            self.context.incumbent.raise_bound(Bound(self.best, "planes"))

    def advance(self) -> bool:
        """A round; whether another one, perhaps with another aim, may help."""
        helped = False
        try:
            helped = self.round()
        except NothingLeft:
            self.empty = self.cutoff == np.inf
            self.claim(self.cutoff)
        if self._aim == 0.0 and np.isfinite(self.cutoff):
            self._kept = self._lower.copy(), self._upper.copy(), self._implied.copy()
            return self._aim_at(FIRST_AIM)
        if helped and self.best < self.cutoff:
            return True
        return self._aim_at(min(FIRST_AIM, 2.0 * self._aim) if self.best >= self.cutoff else 0.5 * self._aim)

    def _aim_at(self, part: float) -> bool:
        """Ask for points that take more than this part off the gap: a lower cutoff shrinks boxes faster.

        Where there are none, the bound is as high as the cutoff, and boxes that hold only up to it go. Where
        that is not proved, the LP's bound holds all the same, and is a better one. Whether
        it may help.
        """
        known = self.context.incumbent.cutoff
        if part < LEAST_AIM or not np.isfinite(known - self.best) or known <= self.best:
            return False
        cutoff = self.best + part * (known - self.best)
        if self._aim > 0.0 and cutoff > self.cutoff:
            lower, upper, implied = self._kept
            self._lower, self._upper, self._implied = lower.copy(), upper.copy(), implied.copy()
        self._aim, self.cutoff = part, cutoff
        return True

    def round(self) -> bool:
        """Cells, cuts, boxes; whether another round may help."""
        context, before, volume = self.context, self.best, self._volume()
        if self._aim == 0.0:
            self.cutoff = self.context.incumbent.cutoff
        self.rounds += 1
        cells = self._cells()
        if cells is None:
            return False
        lp = self._loaded()
        with context.stopwatch.measure("engine"):
            self._cuts(lp, cells)
            self._shrink(lp, context.budget.part(SHRINK_SHARE * context.budget.left))
        gap = self.cutoff - before if np.isfinite(self.cutoff) else 1.0 + abs(self.best)
        gained = np.isfinite(self.best) and not self.best - before <= WORTH * gap
        return gained or self._volume() < (1.0 - WORTH) * volume

    def _cells(self) -> list[NetworkCells] | None:
        """Every sample's cells, cut anew as long as boxes shrink by what was dropped; None out of time."""
        while True:
            before, cells = self._volume(), list[NetworkCells]()
            self._propagate()
            self._imply()
            for sample in self._plan.samples:
                if self.context.over:
                    return None
                cells.append(self._cut(sample))
            if self.context.over or self._volume() > (1.0 - CUT_AGAIN) * before:
                self._propagate()
                return cells

    def _volume(self) -> float:
        """The mean width of the inputs' boxes."""
        inputs = self._plan.inputs
        return float(np.mean(self._upper[inputs] - self._lower[inputs]))

    def _held(self) -> Mip:
        """The host within the boxes, with the cutoff as a row."""
        return with_cutoff(replace(self._mip, lower=self._lower, upper=self._upper), self.cutoff)

    def _propagate(self) -> None:
        """Rows and the cutoff, passed on to the boxes."""
        box = propagate(self._held())
        if box.empty is not None:
            raise NothingLeft
        self._lower, self._upper = box.lower.copy(), box.upper.copy()

    def _imply(self) -> None:
        """Multipliers of earlier LPs, with the boxes and the cutoff of now."""
        self._implied.lower_cutoff(float(self._held().row_upper[self._mip.n_rows]))
        for j, sign in self._implied:
            if self.context.over:
                return
            if j != OBJECTIVE and self._upper[j] - self._lower[j] <= WIDE:
                continue
            value = self._implied.value(j, sign, self._lower, self._upper)
            if j != OBJECTIVE:
                self._tighten(j, sign, value)
                continue
            if value > self.cutoff:
                raise NothingLeft
            self.claim(value)

    def _cut(self, sample: Sample) -> NetworkCells:
        """A sample's box in cells; the boxes of its inputs and outputs become what is left."""
        inputs, outputs = sample.inputs, sample.outputs
        box, limits = ((self._lower[j], self._upper[j]) for j in (inputs, outputs))
        cells = NetworkCells(sample.planes, sample.slack, box, self._mip.integer[inputs], limits)
        if not len(cells):
            raise NothingLeft
        if not cells.finite:
            raise UnsupportedError("numbers in a network grow too large for planes")
        for columns, bottom, top in (
            (inputs, cells.low.min(0), cells.high.max(0)),
            (outputs, cells.below.min(0), cells.above.max(0)),
        ):
            if narrow(self._lower, self._upper, columns, bottom, top) is not None:
                raise NothingLeft
        return cells

    def _loaded(self) -> SafeLp:
        return SafeLp(self._held(), seed=self.context.seed, threads=self.context.threads)

    def _cuts(self, lp: SafeLp, cells: list[NetworkCells]) -> None:
        """Solve, cut off, solve again."""
        budget = self.context.budget
        slow, reached = 0, -np.inf  # in this round: its first LPs know less than the last ones before
        for _ in range(CUT_ROUNDS):
            answer = self._solved(lp)
            x, gap = answer.x, self.cutoff - reached
            moved = answer.bound - reached > LITTLE * gap or not np.isfinite(gap)
            slow, reached = 0 if moved else slow + 1, max(reached, answer.bound)
            if x is None or self.context.over or slow == PATIENCE:
                return
            entries: list[tuple[IntArray, FloatArray, float]] = []
            for sample, one in zip(self._plan.samples, cells, strict=True):
                row = one.cut_off(x[sample.inputs], x[sample.outputs], budget)
                if row is not None:
                    columns = np.append(sample.inputs, sample.outputs)
                    entries.append((columns, -row[0], -float(row[1].min())))
            if not entries:
                return
            lp.add_rows(*_rows(entries, self._mip.n_columns))

    def _solved(self, lp: SafeLp) -> LpAnswer:
        answer = lp.minimise(self._mip.cost, self._mip.offset, self.context.budget)
        if answer.status is MipStatus.INFEASIBLE:
            raise NothingLeft
        self.claim(answer.bound)
        if answer.multipliers is not None:
            known = Implied(self._mip.cost, self._mip.offset, lp.program, answer.multipliers)
            self._implied.keep(OBJECTIVE, 1.0, known)
        return answer

    def _shrink(self, lp: SafeLp, budget: Budget) -> None:
        """Least and largest value of inputs over the LP with its cuts, the widest first, while it pays."""
        left: list[float] = []
        inputs = self._plan.inputs
        for j in inputs[np.argsort(self._lower[inputs] - self._upper[inputs], kind="stable")]:
            wide = self._upper[j] - self._lower[j]
            paid = len(left) < TRIAL or np.mean(left[-TRIAL:]) < 1.0 - WORTH
            if budget.over or self.context.over or not paid:
                return
            if wide <= WIDE:
                continue
            for sign in (1.0, -1.0):
                self._ask(lp, j, sign, budget)
            left.append((self._upper[j] - self._lower[j]) / wide)

    def _ask(self, lp: SafeLp, j: int, sign: float, budget: Budget) -> None:
        """The least (sign 1) or largest value of an input."""
        cost = np.zeros(self._mip.n_columns)
        cost[j] = sign
        answer = lp.minimise(cost, 0.0, budget, (self._lower, self._upper))
        if answer.status is MipStatus.INFEASIBLE:
            raise NothingLeft
        if answer.multipliers is not None:
            self._implied.keep(j, sign, Implied(cost, 0.0, lp.program, answer.multipliers))
        self._tighten(j, sign, answer.bound)

    def _tighten(self, j: int, sign: float, bound: float) -> None:
        """sign x_j >= bound, up to a hair."""
        if not np.isfinite(bound):
            return
        reached = sign * (bound - PAD * (1.0 + abs(bound)))
        if sign > 0:
            self._lower[j] = min(max(self._lower[j], reached), self._upper[j])
        else:
            self._upper[j] = max(min(self._upper[j], reached), self._lower[j])


def _rows(
    entries: list[tuple[IntArray, FloatArray, float]], columns: int
) -> tuple[sp.csr_array, FloatArray, FloatArray]:
    """Rows values'x[columns] <= limit; entries of a column that is read twice add up."""
    row = np.repeat(np.arange(len(entries)), [where.size for where, _, _ in entries])
    where = np.concatenate([where for where, _, _ in entries])
    values = np.concatenate([values for _, values, _ in entries])
    A = sp.csr_array((values, (row, where)), shape=(len(entries), columns))
    A.sum_duplicates()
    A.eliminate_zeros()
    tiny = sp.csr_array((np.abs(A.data) < SMALLEST, A.indices, A.indptr), shape=A.shape).sum(axis=1) > 0
    limits = np.array([limit for _, _, limit in entries])[~tiny]  # a cut less is no harm
    return sp.csr_array(A[~tiny]), np.full(limits.size, -np.inf), limits
