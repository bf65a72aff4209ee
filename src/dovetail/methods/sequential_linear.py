"""Trust-region sequential (MI)LP: networks replaced by their slopes, step by step, from many starts.

    repeat from a start z
        linearise: values f and slopes J of every network at z, in one batch
        step:      an LP over the host with y = f + J (x - x_z) within a trust region, penalised
        accept:    the best part of the step, if the true merit falls; widen or shrink the region

Idea: ReLU networks are piecewise linear, so inside a piece a step is exact, and equalities through a network
are met to machine precision where the paper's loop closes its gap only linearly. Integers and classes move
in an outer MILP step of the same model and are held in the inner LP steps. Weakness: each descent ends in a
local optimum, hence many starts; nothing is proved.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.options import require_count, require_flags, require_number
from dovetail.linearised.descent import LARGEST_RADIUS, DescentOptions, Iterate, MixedIntegerDescent
from dovetail.linearised.scaled_problem import scaled_problem
from dovetail.linearised.starts import start_stream
from dovetail.methods.portfolio import Move, Turn, moves_of, take_turns
from dovetail.run.context import MethodOutcome, SolveContext

RELAXED = 2
"""While no solution is known, one in this number of starts begins with relaxed integers."""


SAME = 1e-5
"""Relative to 1 + |value|: descents into the same optimum end closer than this, because each continues until
the model predicts less than 1e-7."""


@dataclass(frozen=True)
class SequentialLinear:
    """Sequential linear programming in trust regions, from many starts.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], lower=0.0, upper=[3.0, 9.0]))
    >>> block = problem.add_predictor(lambda X: (X - 1.0) ** 2, inputs=[0], outputs=[1])
    >>> result = dt.solve(problem, dt.SequentialLinear(starts=3), log=False)
    >>> result.objective < 1e-3
    True
    """

    starts: int | None = None
    """Number of descents; None: until the time is over or `patience` descents in a row gained nothing."""
    patience: int = 20
    """Number of descents in a row that end in a known local optimum."""
    radius: float = 0.2
    """First trust region, in widths of the inputs' boxes; half of it near the incumbent, the whole box for
    choices of integers while no solution is known."""
    bundle: int = 8
    """Number of linearisations kept as one-sided cuts; 0 for plain sequential LP."""
    steps: int = 60
    """Largest number of steps of one descent."""
    until_feasible: bool = False
    """Whether to continue beyond `starts` while no solution is known, as long as time and patience last."""

    name = "sequential-linear"

    def __post_init__(self) -> None:
        if self.starts is not None:
            require_count("SequentialLinear: starts", self.starts, at_least=1)
        require_count("SequentialLinear: patience", self.patience, at_least=1)
        require_count("SequentialLinear: bundle", self.bundle, at_least=0)
        require_count("SequentialLinear: steps", self.steps, at_least=1)
        require_number("SequentialLinear: radius", self.radius, above=0.0)
        require_flags("SequentialLinear", self, "until_feasible")

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Descend from one start after the other."""
        return take_turns(context, moves_of(context, self), self.starts, until_feasible=self.until_feasible)

    def moves(self, context: SolveContext) -> list[Move]:
        """One move: the next descent."""
        return [Descents(context, self)]


class Descents(Move):
    """Descents from the starts of a solve."""

    def __init__(self, context: SolveContext, options: SequentialLinear) -> None:
        super().__init__(options.patience)
        self._scaled, self._radius, self._done = context.once(scaled_problem), options.radius, 0
        self._descent = MixedIntegerDescent(
            context,
            self._scaled,
            DescentOptions(steps=options.steps, bundle_size=options.bundle),
        )
        self._starts, self._optima = context.once(start_stream), context.once(local_optima)
        self._context = context
        self._unfinished: tuple[FloatArray, str] | None = None

    def turn(self, context: SolveContext) -> Turn | None:
        """A descent from the next start, or the continuation of an interrupted one. While no solution is
        known, half of them begin with relaxed integers, and integers are chosen for inputs anywhere in their
        boxes: of three machines over eight periods in a chain, states within 0.9, a first solution takes 27
        LPs instead of 944, and costs 7.46 instead of 8.50."""
        z, kind = self._unfinished or next(self._starts, (None, ""))
        if z is None:
            return None
        radius = self._radius if kind != "near" else 0.5 * self._radius
        if self._context.incumbent.x is None and self._done % RELAXED == 0:
            z = self._descent.relax(z, radius, context.budget, kind)
        if self._context.incumbent.x is None and np.any(self._scaled.free_integers):
            radius = LARGEST_RADIUS
        self._done += 1
        iterate = self._descent.descend(z, radius, context.budget, kind)
        objective = self._context.problem.mip.sign * (iterate.merit + self._scaled.host.offset)
        self._unfinished = (iterate.z, kind) if context.budget.over else None
        learnt = self._unfinished is not None or self._optima.add(iterate)
        return Turn(iterate.merit, objective if iterate.feasible else math.nan, learnt)


class LocalOptima:
    """Sorted values of local optima."""

    def __init__(self) -> None:
        self._values: list[float] = []

    def add(self, iterate: Iterate) -> bool:
        """Whether a descent ended in a new optimum, which is recorded."""
        if not iterate.feasible:
            return False
        value, room = iterate.merit, SAME * (1.0 + abs(iterate.merit))
        place = bisect.bisect_left(self._values, value - room)
        if place < len(self._values) and self._values[place] <= value + room:
            return False
        bisect.insort(self._values, value)
        return True


def local_optima(context: SolveContext) -> LocalOptima:
    """The local optima of a solve (see `SolveContext.once`)."""
    return LocalOptima()
