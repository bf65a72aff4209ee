"""Quadratic functions and networks as rows, in one MIP: exact, with a bound.

    tangents: LPs with planes in place of curves; planes that a point violates are added. points: if all
    curves are convex costs, PIQP finds the best point for the current integers. MILPs: the same with
    integers, until the bound meets the best point (outer approximation). SCIP: if planes bring no more
    progress (a curve is not convex), or take too long

Idea: tangents describe a convex curve completely, and HiGHS refuses quadratic MIPs. Weakness: a curve that
has to be bounded on its concave side has only chords over its box: these prove little, and only SCIP, or
branching over inputs, makes progress from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import PAD, UNIT, Box, narrow, propagate
from dovetail.bounds.safe_lp import SafeLp
from dovetail.branching.confirmed import EngineSettings, hidden, stands
from dovetail.core.arrays import FloatArray
from dovetail.core.mip import SMALLEST, Mip
from dovetail.methods.quadratic_mip.convex import ConvexProgram
from dovetail.methods.quadratic_mip.curve import Plane, QuadCurve
from dovetail.methods.quadratic_mip.plan import QuadraticPlan, quadratic_plan
from dovetail.mip.answers import answer_of, installed
from dovetail.mip.scip import solve_quadratic
from dovetail.reformulations.reformulated import Reformulated
from dovetail.reformulations.relu_big_m import read_elsewhere
from dovetail.run.bound import Bound, Scope, Support
from dovetail.run.budget import Budget, StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.engine import MipAnswer
from dovetail.run.progress import Progress

GAP = 1e-9
"""A hundredth of the gap that `optimal` allows, so that the engine's own gap does not matter."""
MISSED, MIP_MISSED = 1e-9, 1e-7
"""Relative to max(1, |y|): a point of an LP, or a MILP, this close to its quadratic function counts as on
it."""
LP_ROUNDS, MIP_ROUNDS = 200, 50
"""Largest number of rounds of tangents: LPs are quick, and a MILP that needs more is better left to SCIP."""
WORTH, PATIENCE = 1e-3, 3
"""LPs before MILPs continue while the bound rises by this fraction within this number of rounds."""
FIRST_GAP, NARROWING = 1e-2, 0.1
"""MILPs before the last are solved to a fraction of the remaining gap: their points serve for tangents."""
LOOK_SHARE = 0.1
"""Share of the time left for our own tree that confirms a MILP before the last."""
KEPT_POINTS = 5
"""Number of points whose tangents the rows for a bound begin with."""
PLANES_SHARE = 0.4
"""Share of the time if SCIP may follow, which is usually better for the remaining gap."""
POINTS_SHARE = 0.5
"""Share of the time if points and bounds need rows of their own."""
NONE = "no quadratic functions, or predictors beside them that cannot be written as constraints"


ROUNDS = 4
"""Rounds of propagation, from rows to squares and from squares to their arguments."""

Rows = tuple[sp.csr_array, FloatArray, FloatArray]


@dataclass(frozen=True)
class QuadraticMip:
    """Solves a problem of rows, quadratic functions, and networks that can be written as rows."""

    name = "quadratic-mip"

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Planes first; then SCIP for the remaining gap."""
        plan = context.once(quadratic_plan)
        if plan is None:
            return MethodOutcome(StopReason.STALLED, 0, f"quadratic MIP: {NONE}")
        context.monitor.say(f"  proof: {len(plan.curves)} quadratic functions by planes")
        looked_at: list[FloatArray] = []
        if plan.written.relaxed is not None or not plan.written.proves:
            share = POINTS_SHARE if plan.written.proves else 1.0
            run = _PlanesMip(context, plan, plan.written, proves=False)
            run.run(context.budget.part(share * context.budget.left))
            looked_at = run.looked_at
        if plan.written.proves and not context.over:
            _PlanesMip(context, plan, plan.written.for_bounds, looked_at, proves=True).run(context.budget)
        return MethodOutcome(context.over or StopReason.STALLED, len(context.monitor.trace))


class _PlanesMip:
    """One program and its planes."""

    def __init__(
        self,
        context: SolveContext,
        plan: QuadraticPlan,
        written: Reformulated,
        looked_at: Sequence[FloatArray] = (),
        *,
        proves: bool,
    ) -> None:
        """`looked_at` are points, over the columns of the problem, for first tangents."""
        self._context, self._plan, self._written, self._proves = context, plan, written, proves
        self._progress = Progress(context)
        self._cutoff = self._context.incumbent.cutoff
        own = written.problem.mip.minimised().as_checked()
        box = propagated(with_cutoff(own.loosened(), self._cutoff), plan.curves)
        limits = np.maximum(own.lower, box.lower), np.minimum(own.upper, box.upper)
        self._mip = replace(own, lower=limits[0], upper=np.maximum(*limits))
        self._curves = [curve.within(box.lower, box.upper) for curve in plan.curves]
        self._planes: list[Plane] = [plane for curve in self._curves for plane in curve.envelope()]
        self.looked_at: list[FloatArray] = []
        for point in looked_at[-KEPT_POINTS:]:
            self._keep_tangents(point)
        self._convex = self._convex_program()
        self._best = -np.inf

    def _convex_program(self) -> ConvexProgram | None:
        """The convex program, if every quadratic function is a convex cost that no other row uses."""
        mip, outputs = self._mip, np.array([curve.output for curve in self._curves])
        if np.any(read_elsewhere(self._context.problem)[outputs]) or np.any(mip.cost[outputs] < 0.0):
            return None
        if not all(curve.convex for curve in self._curves):
            return None
        return ConvexProgram(mip, self._curves)

    def run(self, budget: Budget) -> None:
        """Run until the bound meets the best point, or planes make no progress and SCIP is done."""
        scip = "scip" in installed()
        part = budget.part(PLANES_SHARE * budget.left) if scip else budget
        with self._context.stopwatch.measure("engine"):
            self._offer_with_tangents(self._polished(None, part))
            settled = self._by_lps(part)
            if np.any(self._mip.integer):
                settled = self._run_milps(part)
        if scip and not settled and not self._is_over(budget):
            self._run_scip(budget)

    def _is_over(self, budget: Budget) -> bool:
        return bool(self._context.over or budget.over)

    # ---- planes

    def _by_lps(self, budget: Budget) -> bool:
        """Tangents at LP solutions; for a program without integers until its best point is on all
        functions."""
        mip, idle = self._mip, 0
        lp = SafeLp(with_planes(mip, self._planes), seed=self._context.seed, threads=self._context.threads)
        whole, reached = bool(np.any(mip.integer)), -np.inf
        for _ in range(LP_ROUNDS):
            answer = lp.minimise(mip.cost, mip.offset, budget)
            if not whole:
                self._claim_bound(answer.bound)
            if answer.x is None or self._is_over(budget):
                break
            idle = idle + 1 if whole and answer.bound < reached + WORTH * (1.0 + abs(reached)) else 0
            reached = max(reached, answer.bound)
            new = self._cut_off(answer.x, MISSED)
            if not whole:
                self._offer_with_tangents(answer.x)
            if not new:
                return self._on_curves(answer.x)
            if idle > PATIENCE or self._is_over(budget):
                break
            lp.add_rows(*as_rows(new, mip.n_columns))
        return False

    def _run_milps(self, budget: Budget) -> bool:
        """The same loop with integers."""
        last = False
        for _ in range(MIP_ROUNDS):
            gap = GAP if last else self._gap()
            answer = self._asked(with_planes(self._mip, self._planes), budget, gap)
            if answer is None or answer.x is None or self._is_over(budget):
                break
            new = self._cut_off(answer.x, MIP_MISSED)
            self._offer_with_tangents(answer.x)
            self._offer_with_tangents(self._polished(answer.x, budget))
            self._progress.record(answer.value, exact=answer.exact)
            if self._is_over(budget):
                break
            if not new and last:
                return self._on_curves(answer.x)
            last = last or not new
        return False

    def _on_curves(self, z: FloatArray) -> bool:
        """Whether a point of the planes is on the functions, so that SCIP is not needed."""
        return all(
            abs(curve.value(z) - z[curve.output]) <= MIP_MISSED * max(1.0, abs(z[curve.output]))
            for curve in self._curves
        )

    def _gap(self) -> float:
        """The gap for the next MILP: a fraction of what is left."""
        left = (self._context.incumbent.cutoff - self._best) / (1.0 + abs(self._best))
        return float(np.clip(NARROWING * left, GAP, FIRST_GAP)) if np.isfinite(left) else FIRST_GAP

    def _asked(self, mip: Mip, budget: Budget, gap: float) -> MipAnswer | None:
        """One MILP, and the bound that it proves."""
        context, known = self._context, self._context.incumbent.x
        answer = answer_of(
            "MIP of planes", mip, budget, seed=context.seed, threads=context.threads,
            start=None if known is None else self._written.lift(known), gap=gap, cutoff=self._cutoff,
        )  # fmt: skip
        if answer is None:
            return None
        if self._proves:
            settings = EngineSettings(context.seed, context.threads, context.incumbent.gap)
            part = budget if gap == GAP else budget.part(LOOK_SHARE * budget.left)
            found = stands(mip, answer, settings, part, self._cutoff)
            self._claim_bound(found.bound, found.support)
        return answer

    def _cut_off(self, z: FloatArray, missed: float) -> list[Plane]:
        """The planes that a point violates; they are kept."""
        found = []
        for curve in self._curves:
            for plane in (curve.below(z), curve.above(z)):
                if plane is not None and plane.missed(z) > missed * max(1.0, abs(z[curve.output])):
                    found.append(plane)
        self._planes += found
        return found

    def _offer_with_tangents(self, z: FloatArray | None) -> None:
        """Offer a point, and keep the tangents at it."""
        if z is None:
            return
        point = self._plan.point(z, of_bound=self._proves)
        self._context.incumbent.offer(point, "quadratic")
        self.looked_at.append(point)
        self._keep_tangents(point)

    def _keep_tangents(self, point: FloatArray) -> None:
        self._planes += [plane for curve in self._curves if (plane := curve.below(point)) is not None]

    def _polished(self, z: FloatArray | None, budget: Budget) -> FloatArray | None:
        """The best point with the integers of `z`, or without integrality, if that is a convex program."""
        return None if self._convex is None or self._is_over(budget) else self._convex.solve(budget, z)

    # ---- proofs

    def _claim_bound(self, bound: float, support: Support = Support.PROOF) -> None:
        """Claim a bound for all points: the smaller of this bound and the cutoff."""
        bound = min(bound, self._cutoff)
        if self._proves and np.isfinite(bound):
            self._best = max(self._best, bound)
            self._context.incumbent.raise_bound(Bound(bound, "tangents", Scope.WRITTEN, support))

    def _run_scip(self, budget: Budget) -> None:
        """SCIP with the functions themselves. SCIP's bound counts if SCIP finished and has a solution."""
        with self._context.stopwatch.measure("engine"):
            known = self._context.incumbent.x
            start = None if known is None else self._written.lift(known)
            functions = [_as_function(curve) for curve in self._curves]
            mip = given_way(self._mip, self._curves)
            found = solve_quadratic(mip, functions, budget, self._context.seed, start)
        if found is None or found.x is None:
            return
        self._offer_with_tangents(found.x)
        if found.exact and self._proves:
            costs = ((abs(float(mip.cost[curve.output])), curve.slack) for curve in self._curves)
            rounding = sum(cost * slack for cost, slack in costs if cost > 0.0)
            self._claim_bound(found.bound - hidden(mip, found.x) - rounding, Support.ENGINE)
        self._progress.record(found.value, exact=found.exact)


def _as_function(curve: QuadCurve) -> tuple[int, list[int], FloatArray, FloatArray, float]:
    """Output, inputs, and Q, linear part and constant of x'Qx + linear'x + constant."""
    Q = curve.F.T @ curve.F - curve.G.T @ curve.G
    linear = 2.0 * (curve.e @ curve.F - curve.h @ curve.G) + curve.linear
    constant = float(curve.e @ curve.e - curve.h @ curve.h) + curve.constant
    return curve.output, curve.inputs.tolist(), Q, linear, constant


def as_rows(planes: Sequence[Plane], columns: int) -> Rows:
    """sign y - slopes'x >= constant."""
    place = np.concatenate([np.append(plane.inputs, plane.output) for plane in planes])
    data = np.concatenate([np.append(-plane.slopes, plane.sign) for plane in planes])
    indptr = np.cumsum([0, *(plane.inputs.size + 1 for plane in planes)])
    matrix = sp.csr_array((data, place, indptr), shape=(len(planes), columns))
    matrix.eliminate_zeros()
    constants = np.array([plane.constant for plane in planes])
    return matrix, constants, np.full(len(planes), np.inf)


def with_planes(mip: Mip, planes: Sequence[Plane]) -> Mip:
    """`mip` with the planes as rows at its end."""
    return mip.with_rows(*as_rows(planes, mip.n_columns)) if planes else mip


def given_way(mip: Mip, curves: Sequence[QuadCurve]) -> Mip:
    """`mip` with rows and bounds of quadratic outputs relaxed by the rounding of the deployed blocks."""
    room = np.zeros(mip.n_columns)
    np.maximum.at(room, [curve.output for curve in curves], [curve.slack for curve in curves])
    rows = sp.csr_array(abs(mip.A)) @ room
    return replace(
        mip,
        row_lower=mip.row_lower - rows,
        row_upper=mip.row_upper + rows,
        lower=mip.lower - room,
        upper=mip.upper + room,
    )


def propagated(mip: Mip, curves: Sequence[QuadCurve]) -> Box:
    """Bounds implied by rows and by squares: a bounded square bounds its argument."""
    lower, upper = mip.lower.copy(), mip.upper.copy()
    squares = np.array([curve.output for curve in curves if curve.squares], dtype=np.int64)
    narrow(lower, upper, squares, np.zeros(squares.size), np.full(squares.size, np.inf))
    box = Box(lower, upper)
    for _ in range(ROUNDS):
        box = propagate(replace(mip, lower=box.lower, upper=box.upper))
        before = box.lower.copy(), box.upper.copy()
        for curve in curves:
            if curve.single:
                _root(curve, box)
        if np.array_equal(before[0], box.lower) and np.array_equal(before[1], box.upper):
            break
    return box


def _root(curve: QuadCurve, box: Box) -> None:
    """|a x + e| is at most the root of the largest square."""
    most = box.upper[curve.output]
    if not np.isfinite(most):
        return
    a, e, j = float(curve.F[0, 0]), float(curve.e[0]), int(curve.inputs[0])
    root = float(np.sqrt(max(most, 0.0))) * (1.0 + PAD) + PAD + curve.rounded[1]
    ends = sorted(((-root - e) / a, (root - e) / a))
    pad = PAD * (1.0 + max(map(abs, ends)))
    low, high = max(box.lower[j], ends[0] - pad), min(box.upper[j], ends[1] + pad)
    if low <= high:  # an empty box is reported by the rows
        box.lower[j], box.upper[j] = low, high


def with_cutoff(mip: Mip, cutoff: float) -> Mip:
    """A program in minimisation form with cost'x <= cutoff as its last row. Costs too small for a row are
    left out, and the limit is relaxed by their sum."""
    small = (mip.cost != 0.0) & (np.abs(mip.cost) < SMALLEST)
    size = np.maximum(np.abs(mip.lower[small]), np.abs(mip.upper[small]))
    limit = cutoff - mip.offset + float(np.abs(mip.cost[small]) @ size)
    row = sp.csr_array(np.where(small, 0.0, mip.cost)[None])
    return mip.with_rows(row, [-np.inf], [limit + UNIT * 8.0 * abs(limit)])
