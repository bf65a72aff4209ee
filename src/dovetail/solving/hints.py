"""Suggestions for the next solve: each only if the run shows that it applies, the most promising first.

Unbounded inputs of networks are among them. Constraints and bounds may leave an input unlimited on one side;
a network then extrapolates, and the search may end where the extrapolation is best.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dovetail.bounds.box import propagate
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.check import Violation
from dovetail.core.extrapolation import Extrapolation, notable
from dovetail.core.mip import TOLERANCE
from dovetail.core.problem import Problem
from dovetail.core.widening import Widening, widenings
from dovetail.core.words import listed, several
from dovetail.methods.elastic import smallest_relaxation
from dovetail.report.gains import ROWS_ONLY, Gain, relative_gap
from dovetail.report.log.table import number, percent
from dovetail.run.budget import Budget, StopReason
from dovetail.run.context import SolveContext
from dovetail.run.result import Status
from dovetail.solving.host import NO_POINT, HostRelaxation
from dovetail.solving.status import Conclusion
from dovetail.structure.boxes import input_box

SHARE, SECONDS = 0.02, 1.0
"""Share of the time left, and largest number of seconds, for LPs that bound inputs."""
MOST_ENTRIES = 2_000_000
"""Largest number of matrix entries for bound propagation before a warning."""


@dataclass(frozen=True)
class OpenInput:
    """A variable without a limit on one or both sides."""

    column: int
    name: str
    below: bool
    above: bool

    def __str__(self) -> str:
        sides = ["below"] * self.below + ["above"] * self.above
        return f"{self.name} ({' and '.join(sides)})"


def open_inputs(
    problem: Problem, budget: Budget, *, seed: int = 0, threads: int = 1
) -> tuple[OpenInput, ...]:
    """The unbounded inputs; none if the time did not allow certainty."""
    if problem.stated.nonzeros > MOST_ENTRIES:
        return ()
    inputs, open_columns = _read_by_networks(problem), np.zeros(problem.stated.n_columns, dtype=bool)
    for part in problem.stated.columns:
        part.of(open_columns)[:] = ~(np.isfinite(part.lower) & np.isfinite(part.upper))
    if not np.any(open_columns[inputs]):
        return ()
    mip = problem.mip
    if np.all(propagate(mip.minimised()).finite[inputs]):
        return ()
    box = input_box(problem, budget.part(min(SHARE * budget.left, SECONDS)), seed=seed, threads=threads)
    if not box.complete:
        return ()
    below, above = np.isneginf(box.lower), np.isposinf(box.upper)
    made = np.zeros(mip.n_columns, dtype=bool)
    made[problem.outputs] = True  # a value passed from one network to another is limited by the first network
    which = inputs[(below | above)[inputs] & ~made[inputs]]
    return tuple(OpenInput(int(j), mip.column_name(int(j)), bool(below[j]), bool(above[j])) for j in which)


def _read_by_networks(problem: Problem) -> IntArray:
    """The inputs of trained predictors (quadratic terms hold everywhere)."""
    trained = [block for block in problem.blocks if block.description.quadratic is None]
    if len(trained) == len(problem.blocks):
        return problem.inputs
    none = np.empty(0, dtype=np.int64)
    return np.unique(np.concatenate([none, *(block.inputs.ravel() for block in trained)]))


LATE, LONGER = 0.5, 4.0
"""The fraction of a solve after which an improvement is late, and the factor on the suggested time limit."""

NO_GAP, SMALL_GAP, ROUNDING = 1e-9, 1e-3, 0.05
"""Gaps that a margin may explain; and the relative distance at which a class counts as at its margin."""
DATA_ADVICE = "; with data= the result says whether the solution leaves the training data"
"""A note for hints if no training data was given."""


@dataclass(frozen=True, eq=False)
class Finding:
    """The state after a run, for the hints."""

    problem: Problem
    context: SolveContext
    host: HostRelaxation
    conclusion: Conclusion
    method: str
    open_inputs: tuple[OpenInput, ...] = ()
    extrapolations: tuple[Extrapolation, ...] = ()

    @property
    def x(self) -> FloatArray | None:
        """The solution."""
        return self.context.incumbent.x


def hints(found: Finding) -> tuple[str, ...]:
    """All hints that apply."""
    kinds = (
        _infeasible,
        _nearly_feasible,
        _bounds,
        _longer_time_limit,
        _another_method,
        _class_margin,
        _training_data,
    )
    return tuple(hint for kind in kinds for hint in kind(found))


def warning(open_inputs: Sequence[OpenInput]) -> str:
    """The warning before the search; "" if all inputs are bounded."""
    if not open_inputs:
        return ""
    named = listed([str(each) for each in open_inputs])
    return f"unbounded inputs: {named}; only the extrapolation of the networks limits the search there"


def _infeasible(found: Finding) -> Iterator[str]:
    """The constraints alone are infeasible: which limits would have to change."""
    if found.conclusion.status is not Status.INFEASIBLE or not found.host.infeasible:
        return
    if found.host.note and found.host.note != NO_POINT:
        yield f"{found.host.note}: widen them"
        return
    context = found.context
    widened = smallest_relaxation(found.problem, context.budget, seed=context.seed, threads=context.threads)
    if widened:
        yield f"the smallest change of constraints that admits a solution: {_changes(widened)}"


def _nearly_feasible(found: Finding) -> Iterator[str]:
    """No candidate passed: which limits the nearest one violates."""
    incumbent = found.context.incumbent
    without = found.conclusion.status in (Status.NO_SOLUTION, Status.INFEASIBLE)
    if not without or found.host.infeasible or incumbent.nearest_x is None:
        return
    missed = widenings(found.problem.mip, incumbent.nearest_x)
    if missed and _only_limits_are_missed(incumbent.nearest):
        yield f"the nearest candidate would pass with {_changes(missed)}"


def _only_limits_are_missed(violation: Violation | None) -> bool:
    """Whether the candidate violates limits only, not classes or integrality."""
    others = () if violation is None else (violation.integrality, violation.prediction)
    return all(kind.amount <= TOLERANCE for kind in others)


def _longer_time_limit(found: Finding) -> Iterator[str]:
    """A longer time limit, if the run shows that it may help."""
    conclusion, seconds = found.conclusion, found.context.budget.seconds
    if conclusion.stop_reason is not StopReason.TIME:
        return
    more = f"time_limit={max(1.0, float(f'{LONGER * seconds:.0e}')):g}"
    if conclusion.status is Status.NO_SOLUTION:
        yield f"{more}: the time limit ended the solve before a candidate passed the check"
        return
    when = _last_visible_gain(found.context.monitor.trace.incumbents)
    if conclusion.status is Status.FEASIBLE and when > LATE * seconds:
        yield f"{more}: the last improvement came late, after {when:.1f} of {seconds:.1f} s"


def _last_visible_gain(gains: Sequence[Gain]) -> float:
    """When the objective reached its final value in the log's digits; 0 without a solution."""
    return next((gain.seconds for gain in gains if number(gain.value) == number(gains[-1].value)), 0.0)


def _another_method(found: Finding) -> Iterator[str]:
    """The default method, after another one found nothing."""
    if found.conclusion.status is Status.NO_SOLUTION and found.method != "auto":
        yield f'method="auto", which combines several methods: {found.method} found no solution'


def _class_margin(found: Finding) -> Iterator[str]:
    """A small gap that may come from the margin of classes, which searches keep and bounds ignore."""
    objective, bound, context = found.conclusion.objective, found.conclusion.bound, found.context
    if found.conclusion.status is not Status.FEASIBLE or None in (objective, bound):
        return
    assert objective is not None
    assert bound is not None
    gap = relative_gap(objective, bound)
    if (
        not NO_GAP < gap <= SMALL_GAP
        or context.incumbent.proof.source in ROWS_ONLY
        or context.monitor.failure is not None
    ):
        return
    blocks = [block for block in found.problem.blocks if block.classifies and block.epsilon > 0.0]
    held = [block for block in blocks if _at_its_margin(block, found.x)]
    if held:
        yield (
            f"epsilon={held[0].epsilon / 10.0:g} for {listed([block.name for block in held])}: the "
            f"remaining gap of {percent(gap)} may come from the margin of {held[0].epsilon:g} that the "
            "search keeps from class boundaries; bounds ignore the margin"
        )


def _at_its_margin(block: Block, x: FloatArray | None) -> bool:
    """Whether a class is decided by no more than the margin."""
    if x is None:
        return False
    lead = block.lead(block.predictor.predict(x[block.inputs]))
    return bool(np.min(lead) <= (1.0 + ROUNDING) * block.epsilon)


def _bounds(found: Finding) -> Iterator[str]:
    """Unbounded inputs, and their values in the solution."""
    told = [each for each in found.open_inputs if not _within_training_data(found, each.column)]
    if not told:
        return
    x = found.x
    named = [str(each) if x is None else f"{each}, {x[each.column]:.6g} here" for each in told]
    more = "" if _has_training_data(found, told) else DATA_ADVICE
    yield f"bounds for {listed(named)}: only the extrapolation of the networks limits them{more}"


def _has_training_data(found: Finding, told: Sequence[OpenInput]) -> bool:
    """Whether all networks that read these variables have training data."""
    columns = [each.column for each in told]
    readers = [block for block in found.problem.blocks if np.isin(block.inputs, columns).any()]
    return all(block.training_range is not None for block in readers)


def _within_training_data(found: Finding, column: int) -> bool:
    """Whether all networks that read the variable have training data that covers the solution."""
    if found.x is None:
        return False
    for block in found.problem.blocks:
        places = np.argwhere(block.inputs == column)
        if places.size and block.training_range is None:
            return False
        for _, feature in places:
            assert block.training_range is not None
            low, high = block.training_range.lower[feature], block.training_range.upper[feature]
            if not low <= found.x[column] <= high:
                return False
    return True


def _training_data(found: Finding) -> Iterator[str]:
    """Inputs outside the training data."""
    outside = notable(found.extrapolations)
    if outside:
        yield f"bounds within the training data: {several(len(outside), 'input is', 'inputs are')} outside"


def _changes(widened: tuple[Widening, ...]) -> str:
    return listed([str(one) for one in widened])
