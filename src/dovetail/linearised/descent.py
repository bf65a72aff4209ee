"""Bundle sequential linear programming from one start, with integers fixed or relaxed.

    repeat
        step:    the best solution of the linear model within the trust region, network errors penalised
        ratio:   the decrease of the l1 merit, divided by the decrease that the model predicted
        accept:  the best part of the step, if the merit decreases enough
        radius:  larger where the model was right, smaller where it was wrong
        bundle:  earlier linearisations, kept as one-sided cuts

A ReLU network is piecewise linear. Once a step stays inside one linear piece the model is exact, and even
equalities through a network are met to machine precision. (Nocedal and Wright, chapters 4 and 18.)

The bundle: earlier linearisations that are kept as one-sided cuts (Lemarechal; Kiwiel).

Optima are often at kinks, and there a single slope describes only one side. On the side to which the
objective drives an output, the linearisations of the other pieces bound the output too. Together they model a
concave kink (of a maximum; a convex one of a minimum) without any binary.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.mip import HAIR, TOLERANCE
from dovetail.linearised.networks import Linearisation
from dovetail.linearised.scaled_problem import ScaledProblem, l1_merit
from dovetail.linearised.trust_region import BundleCut, LinearStep, TrustRegionSubproblem
from dovetail.run import work
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext
from dovetail.run.engine import Bounds, least_seconds
from dovetail.run.incumbent import over

STEP_LENGTHS = np.array([1.0, 0.6, 0.3, 0.12, 0.04])
"""Fractions of a step that are tried in one network call: about halved each time, down to where a smaller
region is as good as a shorter step."""
SUFFICIENT_DECREASE = 1e-4
"""Fraction of the predicted reduction that a step must achieve (Nocedal and Wright's c1)."""
GOOD_RATIO, POOR_RATIO = 0.5, 0.1
"""Ratios of actual to predicted reduction above which the region grows, and below which it shrinks."""
GROW, SHRINK = 2.0, 0.5
"""Growth factor (Nocedal and Wright's 2), and shrinking factor (half instead of a quarter, because the line
search tries shorter steps)."""
SHRINK_BUNDLED, SOME_CUTS = 0.35, 3
"""Shrinking factor after a rejected step if the bundle has at least this many cuts, because the model
cannot improve within this trust region."""
LARGEST_RADIUS, SMALLEST_RADIUS = 1.0, 1e-6
"""In widths of the inputs: the whole box, and steps too small for the check."""
ESCAPE = 3.0
"""Growth factor of a region without any feasible point."""
FREE_STEPS = 2
"""Number of steps before penalties may grow, because the first steps are limited by the region anyway."""
PENALTY_GROWTH, LARGEST_PENALTY = 3.0, 1e8
"""Growth per step that violates a network, and largest penalty: beyond it an LP loses the digits of the
costs."""
MISSED = 1e-7
"""A larger slack, in spreads of the output, is a violation; a smaller one is within the LP's tolerance."""


STEP_EFFORT = 7e-4
"""Seconds of a step without its LP and its calls of networks, on six problems (0.6 to 1.1 ms)."""

NEAR = 3.0
"""A cut is used within this number of trust-region radii of its point. The end of a rejected step, 1 / 0.35
radii away after the region shrank, is included; farther cuts belong to other pieces."""
SAME_PIECE = 1e-9
"""Relative to max(1, |value|): a linearisation this close to the current value belongs to a linear piece that
contains the point."""


@dataclass(frozen=True)
class DescentOptions:
    """Options of a descent."""

    steps: int = 60
    """Largest number of LPs."""
    bundle_size: int = 8
    """Number of linearisations kept as cuts; 0 for plain sequential LP, which costs 0.1 to 0.3 % on wine."""
    tolerance: float = 1e-7
    """The smallest relative reduction that the model must predict."""
    hold_integers: bool = True


@dataclass(frozen=True, eq=False)
class Iterate:
    """A point and its merit: the objective for a feasible point, otherwise the l1 merit."""

    z: FloatArray
    merit: float
    feasible: bool


class _Trial(NamedTuple):
    """The best of the points along a step."""

    iterate: Iterate
    shortened: bool
    """Whether the point is an inner one and not the end of the step."""
    full_merit: float
    """The merit at the end of the step."""


class Descent:
    """Descents over one trust-region subproblem."""

    def __init__(
        self,
        context: SolveContext,
        scaled: ScaledProblem,
        options: DescentOptions,
        subproblem: TrustRegionSubproblem | None = None,
    ) -> None:
        """`subproblem`: the LP of the steps, if another descent has made it."""
        self._context, self._scaled, self._options = context, scaled, options
        self.subproblem = subproblem or TrustRegionSubproblem(
            scaled,
            context.stopwatch,
            integer=False,
            bundle_size=options.bundle_size,
            seed=context.seed,
            threads=context.threads,
        )
        self.steps = 0
        """Number of LPs solved so far."""

    def relaxed(self, tolerance: float | None = None) -> Descent:
        """A descent with integers relaxed, over the same LP."""
        options = replace(self._options, hold_integers=False, tolerance=tolerance or self._options.tolerance)
        return Descent(self._context, self._scaled, options, self.subproblem)

    def run(self, z: FloatArray, radius: float, budget: Budget, source: str) -> Iterate:
        """Descend from `z` until the model predicts no reduction, the region is tiny, or the time is over."""
        networks, penalty = self._scaled.networks, self._scaled.penalty
        bundle = Bundle(self._scaled, self._options.bundle_size)
        iterate = self.evaluate(z, penalty, source)
        model = networks.linearise(iterate.z)
        senses = np.sign(self._scaled.host.cost[networks.outputs])
        for k in range(self._options.steps):
            if over(self._context.incumbent, budget):
                break

            # step: minimise the model, cut by the bundle, within the trust region
            cuts = bundle.cuts(iterate.z, model, senses, radius)
            step = self._step(iterate.z, radius, model, penalty, senses, cuts, budget)
            if step is None:
                radius *= ESCAPE
                if radius > LARGEST_RADIUS:
                    break
                continue
            senses = step.senses
            if k >= FREE_STEPS:
                penalty = increase_penalty(penalty, step)
            iterate = self.with_penalty(iterate, penalty, model.values)

            # predicted reduction
            predicted = iterate.merit - self._model_value(step, penalty)
            if predicted < self._options.tolerance * (1.0 + abs(iterate.merit)):
                if not iterate.feasible and np.any((step.slack > MISSED) & (penalty < LARGEST_PENALTY)):
                    continue  # no progress because violations are cheap: the penalty is raised
                return iterate if iterate.feasible else self._nearest_to(iterate, step, penalty, source)

            # ratio test: the host's rows are convex, so each part of the step satisfies them
            trial = self._best_of(iterate.z + STEP_LENGTHS[:, None] * (step.z - iterate.z), penalty, source)
            ratio = (iterate.merit - trial.full_merit) / predicted
            accepted = trial.iterate.merit < iterate.merit - SUFFICIENT_DECREASE * predicted

            # bundle, iterate and radius
            if not accepted or trial.shortened:  # the model was wrong at the end of the step
                bundle.add(step.z, networks.linearise(step.z))
            if accepted:
                bundle.add(iterate.z, model)
                iterate = trial.iterate
                model = networks.linearise(iterate.z)
            radius = _next_radius(radius, ratio, accepted, len(bundle))
            if radius < SMALLEST_RADIUS:
                break
        return iterate

    def _nearest_to(self, iterate: Iterate, step: LinearStep, penalty: FloatArray, source: str) -> Iterate:
        """The end of a last step if it is feasible, because it satisfies rows that the start violated
        slightly."""
        end = self.evaluate(step.z, penalty, source)
        return end if end.feasible else iterate

    def evaluate(self, z: FloatArray, penalty: FloatArray, source: str) -> Iterate:
        """`z` with its merit; a point that may improve the incumbent is offered."""
        return self._best_of(z[None], penalty, source).iterate

    def _best_of(self, Z: FloatArray, penalty: FloatArray, source: str) -> _Trial:
        """The best of several points; if it may improve the incumbent, it is offered and completed."""
        scaled = self._scaled
        values = scaled.networks.values(Z)
        completed = scaled.networks.with_predictions(Z, values)
        feasible = self._feasible(completed, Z)
        merit = np.where(feasible, completed @ scaled.host.cost, l1_merit(scaled, Z, values, penalty))
        best = int(np.argmin(merit))
        point = completed[best] if feasible[best] else Z[best]
        iterate = Iterate(point, float(merit[best]), bool(feasible[best]))
        if self._options.hold_integers and self._may_improve(completed[best]):
            admitted = self._context.incumbent.admit(completed[best], source)
            if admitted is not None and not feasible[best] and self._same_classes(admitted, Z[best]):
                iterate = Iterate(admitted, float(scaled.host.cost @ admitted), True)
        return _Trial(iterate, best > 0, float(merit[0]))

    def _may_improve(self, completed: FloatArray) -> bool:
        """Whether a point costs less than the incumbent, beyond rounding."""
        host, incumbent = self._scaled.host, self._context.incumbent
        objective = float(completed @ host.cost) + host.offset
        known = self._context.problem.mip.sign * incumbent.objective
        return incumbent.x is None or objective < known - HAIR * abs(objective - host.offset)

    def _feasible(self, completed: FloatArray, Z: FloatArray) -> BoolArray:
        """(T,) a quick test of rows, bounds, integers and required classes, to half the tolerance."""
        host = self._scaled.host
        limit = 0.5 * TOLERANCE
        holds = np.max(host.bound_violation(completed), axis=1) <= limit
        if self._options.hold_integers and np.any(host.integer):
            integers = completed[:, host.integer]
            holds &= np.max(np.abs(integers - np.round(integers)), axis=1) <= TOLERANCE
        holds &= self._same_classes(completed, Z)
        if host.n_rows:
            holds &= np.max(host.row_violation(completed), axis=1) <= limit
        return np.asarray(holds)

    def _same_classes(self, completed: FloatArray, wanted: FloatArray) -> BoolArray:
        """Whether the classes of a point, or of each of several, are as required."""
        networks = self._scaled.networks
        columns = networks.outputs[networks.classes]
        return np.asarray(np.all(np.abs(completed[..., columns] - wanted[..., columns]) < 0.5, axis=-1))

    def _step(
        self,
        z: FloatArray,
        radius: float,
        model: Linearisation,
        penalty: FloatArray,
        senses: FloatArray,
        cuts: tuple[BundleCut, ...],
        budget: Budget,
    ) -> LinearStep | None:
        """The step of the subproblem: inputs near `z` in units of their widths, integers fixed."""
        host = self._scaled.host
        lower, upper = host.lower.copy(), host.upper.copy()
        if self._options.hold_integers:
            lower[host.integer] = upper[host.integer] = np.round(z[host.integer])
        region = self._scaled.trust_region(z, radius, lower, upper, integers=True)
        self.steps += 1
        work.count(effort=STEP_EFFORT)
        return self.subproblem.solve(
            host.cost, *region, model, penalty, budget=budget, senses=senses, cuts=cuts
        )

    def with_penalty(
        self, iterate: Iterate, penalty: FloatArray, values: FloatArray | None = None
    ) -> Iterate:
        """The same point with its l1 merit for other penalties; `values` are the networks' values there, if
        known."""
        if iterate.feasible:
            return iterate
        Z = iterate.z[None]
        values = self._scaled.networks.values(Z)[0] if values is None else values
        merit = l1_merit(self._scaled, Z, values[None], penalty)
        return Iterate(iterate.z, float(merit[0]), False)

    def _model_value(self, step: LinearStep, penalty: FloatArray) -> float:
        """The l1 merit that the model predicts at the end of the step."""
        return float(self._scaled.host.cost @ step.z + (penalty * self._scaled.spread) @ step.slack)


def increase_penalty(penalty: FloatArray, step: LinearStep) -> FloatArray:
    """Increase the penalties of outputs that the step violates."""
    higher = np.minimum(PENALTY_GROWTH * penalty, np.maximum(LARGEST_PENALTY, penalty))
    return np.where(step.slack > MISSED, higher, penalty)


def _next_radius(radius: float, ratio: float, accepted: bool, cuts: int) -> float:
    """The next radius: larger after a well predicted step, smaller after a poorly predicted one."""
    if not accepted:
        return radius * (SHRINK_BUNDLED if cuts >= SOME_CUTS else SHRINK)
    if ratio > GOOD_RATIO:
        return min(LARGEST_RADIUS, GROW * radius)
    return SHRINK * radius if ratio < POOR_RATIO else radius


class Bundle:
    """The last linearisations with their points."""

    def __init__(self, scaled: ScaledProblem, size: int) -> None:
        self._scaled = scaled
        self._kept: deque[tuple[FloatArray, Linearisation]] = deque(maxlen=max(size, 1))
        self._size = size

    def add(self, z: FloatArray, linearisation: Linearisation) -> None:
        """Add a linearisation; the oldest is dropped beyond the limit."""
        if self._size:
            self._kept.append((z[self._scaled.networks.columns], linearisation))

    def __len__(self) -> int:
        return len(self._kept)

    def cuts(
        self, z: FloatArray, linearisation: Linearisation, senses: FloatArray, radius: float
    ) -> tuple[BundleCut, ...]:
        """The cuts that are near or touch here, and are valid for the values at `z`. Pieces that meet at `z`
        count at any radius, because the descent would circle without them."""
        networks, width = self._scaled.networks, self._scaled.width
        if not self._kept:
            return ()
        here, values = z[networks.columns], linearisation.values
        room = SAME_PIECE * np.maximum(1.0, np.abs(values))
        apart = np.abs(np.array([there for there, _ in self._kept]) - here) / width[networks.columns]
        near = np.maximum.reduceat(apart, networks.first_entry[:-1], axis=1) <= NEAR * radius
        model = np.array([networks.model_values(kept, here) for _, kept in self._kept])
        touching = np.abs(model - values) <= room
        above = (senses < 0) & (model >= values - room)
        below = (senses > 0) & (model <= values + room)
        used = (near | touching) & (above | below)
        return tuple(BundleCut(kept, outputs) for (_, kept), outputs in zip(self._kept, used, strict=True))


MIP_SECONDS = 2.5
"""Time limit of one outer step: the best point found for a linear model is as good as its optimum."""
SMALLEST_OUTER_RADIUS, SHRINK_OUTER = 1e-2, 0.4
"""An outer step without progress shrinks the region; below the first radius inner descents examine the
same region."""
INNER_RADIUS = 0.2
"""The largest first radius of an inner descent, because the outer step has made the long move."""
BOX_RADIUS = 0.1
"""The first radius around the point of a box: half that of a random start."""
PATIENCE = 8
"""Number of outer steps in a row without progress."""
MILP_LPS = 10.0
"""The least time of a MILP step, in LPs (water, 2,000 samples: two seconds of presolve and root)."""
OUTER_STEPS = 1000
"""Largest number of outer steps; usually `PATIENCE` and the radius end them."""
DECREASE = 1e-7
"""Relative: a smaller decrease of a merit is rounding."""
INTEGRAL = 1e-6
"""Distance from whole numbers that counts as integral."""


class MixedIntegerDescent:
    """Descents over one problem that share subproblems."""

    def __init__(self, context: SolveContext, scaled: ScaledProblem, options: DescentOptions) -> None:
        self._context, self._scaled = context, scaled
        self.held = Descent(context, scaled, options)
        """A descent with integers fixed."""
        self._relaxed_descent = self.held.relaxed()
        self._milp = None
        if np.any(scaled.free_integers):
            self._milp = TrustRegionSubproblem(
                scaled, context.stopwatch, integer=True, seed=context.seed, threads=context.threads
            )

    def descend(
        self, z: FloatArray, radius: float, budget: Budget, source: str, steps: int = OUTER_STEPS
    ) -> Iterate:
        """Descend to a local optimum from `z`, a point of the LP relaxation, in at most this number of outer
        steps."""
        if self._milp is None:
            return self.held.run(z, radius, budget, source)
        penalty, best = self._scaled.penalty, self.held.evaluate(z, self._scaled.penalty, source)
        failures = 0
        for _ in range(steps):
            if over(self._context.incumbent, budget) or failures > PATIENCE or self._too_late(budget):
                break
            failures += 1
            host, part = self._scaled.host, budget.part(MIP_SECONDS)
            step = self.step(best.z, radius, (host.lower, host.upper), penalty, part)
            if step is None:
                radius *= ESCAPE
                if radius > LARGEST_RADIUS:
                    break
                continue
            penalty = increase_penalty(penalty, step)
            inner = self._completed(self.held.run(step.z, min(radius, INNER_RADIUS), budget, source), source)
            # with the same penalties: those of the inner descent may have grown a million times
            inner, best = (self.held.with_penalty(iterate, penalty) for iterate in (inner, best))
            if _better(inner, best):
                best, failures = inner, 0
                continue
            radius *= SHRINK_OUTER
            if radius < SMALLEST_OUTER_RADIUS:
                break
        return best

    def relax(self, z: FloatArray, radius: float, budget: Budget, source: str) -> FloatArray:
        """Where a descent from `z` with integers relaxed ends; the check may find integers that fit it.

        The integers of a linear model give its inputs exactly the room that they need; if a network requires
        more, each change costs an outer step. The first step moves the inputs. A relaxed class has no
        information, so that without other integers `z` is returned unchanged.
        """
        choices = self._scaled.free_integers.copy()
        choices[self._scaled.networks.outputs] = False
        if not np.any(choices):
            return z
        iterate = self._relaxed_descent.run(z, radius, budget, source)
        self._context.incumbent.offer(iterate.z, source)
        return iterate.z

    def from_box(self, point: FloatArray, budget: Budget, source: str, *, thorough: bool) -> None:
        """Descend from the point of a box's LP with its integers fixed; `thorough`: with integers free if
        that gives no progress."""
        host, before = self._scaled.host, self._context.incumbent.x
        z = np.clip(point, host.lower, host.upper)
        self.held.run(z, BOX_RADIUS, budget, source)
        if self._context.incumbent.x is not before or not thorough:
            return  # the box had fixed its integers
        if before is None:
            z = self.relax(z, BOX_RADIUS, budget, source)
        self.descend(z, BOX_RADIUS, budget, source)

    def _too_late(self, budget: Budget) -> bool:
        """Whether no MILP would end in time: HiGHS checks the clock only after its first LPs."""
        return MILP_LPS * least_seconds(self._scaled.host) > budget.left

    def _completed(self, iterate: Iterate, source: str) -> Iterate:
        """An iterate whose outputs do not yet have the demanded classes, completed."""
        if iterate.feasible:
            return iterate
        admitted = self._context.incumbent.admit(iterate.z, source)
        return (
            iterate if admitted is None else Iterate(admitted, float(self._scaled.host.cost @ admitted), True)
        )

    def step(
        self, z: FloatArray, radius: float, bounds: Bounds, penalty: FloatArray, budget: Budget
    ) -> LinearStep | None:
        """The linear model's best point between these bounds, without a trust region on integer inputs. None
        if no integer can move, or none is found."""
        if self._milp is None:
            return None
        scaled = self._scaled
        region = scaled.trust_region(z, radius, *bounds, integers=False)
        integral = bool(np.all(np.abs(z - np.round(z))[scaled.host.integer] < INTEGRAL))
        model = scaled.networks.linearise(z, secants=integral)
        return self._milp.solve(
            scaled.host.cost, *region, model, penalty, budget=budget, start=z if integral else None
        )


def _better(inner: Iterate, best: Iterate) -> bool:
    """A feasible iterate is better than an infeasible one; otherwise the merit decides."""
    if inner.feasible != best.feasible:
        return inner.feasible
    return inner.merit < best.merit - DECREASE * (1.0 + abs(best.merit))
