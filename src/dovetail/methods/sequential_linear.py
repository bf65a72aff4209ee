"""Trust-region sequential (MI)LP: networks replaced by their slopes, step by step, from many starts.

    repeat from a start z
        look:   values f and slopes J of every network at z, in one batch
        step:   an LP over the host with y = f + J (x - x_z) within a trust region, penalised
        accept: the best part of the step, if the true merit falls; widen or shrink the region

Idea: ReLU networks are piecewise linear, so inside a piece a step is exact, and equalities through a network
are met to machine precision where the paper's loop closes its gap only linearly. Integers and classes move
in an outer MILP step of the same model and are held in the inner LP steps. Weakness: each descent ends in a
local optimum, hence many starts; nothing is proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dovetail.core.arrays import FloatArray
from dovetail.core.options import require_count, require_number
from dovetail.linearised.descent import DescentOptions
from dovetail.linearised.mixed_integer_descent import MixedIntegerDescent
from dovetail.linearised.scaled_problem import ScaledProblem
from dovetail.linearised.starts import Starts
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.progress import Progress


@dataclass(frozen=True)
class SequentialLinear:
    """Options of the method."""

    starts: int | None = None
    """Descents to make; None: until the time is over or `patience` descents brought nothing."""
    patience: int = 30
    radius: float = 0.2
    """Of the first trust region, in widths of the inputs' boxes; half of it near the incumbent."""
    memory: int = 8
    """Views that are kept as one-sided cuts; 0 for plain sequential LP."""
    steps: int = 60
    """The most steps of one descent."""

    name = "sequential-linear"

    def __post_init__(self) -> None:
        if self.starts is not None:
            require_count("SequentialLinear: starts", self.starts, at_least=1)
        require_count("SequentialLinear: patience", self.patience, at_least=1)
        require_count("SequentialLinear: memory", self.memory, at_least=0)
        require_count("SequentialLinear: steps", self.steps, at_least=1)
        require_number("SequentialLinear: radius", self.radius, above=0.0)

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Measure the problem, then descend from one start after the other."""
        return self.run(context, ScaledProblem.of(context))

    def run(
        self,
        context: SolveContext,
        scaled: ScaledProblem,
        *,
        starts: Iterator[tuple[FloatArray, str]] | None = None,
        seen: Callable[[FloatArray], object] | None = None,
    ) -> MethodOutcome:
        """The same on a problem that is measured already.

        `starts` goes on where another run stopped; `seen` gets the points on the way, settled.
        """
        walk = MixedIntegerDescent(
            context, scaled, DescentOptions(steps=self.steps, bundle_size=self.memory, on_point=seen)
        )
        progress = Progress(context, self.starts, self.patience)
        for z, kind in starts if starts is not None else iter(Starts(context, scaled)):
            radius = self.radius if kind != "near" else 0.5 * self.radius
            place = walk.descend(z, radius, context.budget, kind)
            objective = context.problem.mip.sign * (place.merit + scaled.host.offset)
            outcome = progress.record(place.merit, objective if place.feasible else float("nan"))
            if outcome is not None:
                return outcome
        return progress.exhausted()
