"""What to try next, as far as a run shows it: each hint only where it is true, the most promising first.

Inputs of networks that nothing limits: there the network's own extrapolation decides.

Rows and bounds may leave an input without a limit on one side. A network says something of every value,
however far from all that it was trained on, and a search goes wherever that looks best.
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
from dovetail.report.log.layout import number
from dovetail.report.log.table import percent
from dovetail.run.budget import Budget, StopReason
from dovetail.run.context import SolveContext
from dovetail.run.result import Status
from dovetail.solving.host import NO_POINT, HostRelaxation
from dovetail.solving.status import Conclusion
from dovetail.structure.boxes import input_box

SHARE, SECONDS = 0.02, 1.0
"""Of the time left, and at the most: LPs for the inputs that single rows leave open."""
MOST_ENTRIES = 2_000_000
"""Of the matrix: passing its rows on takes longer than anybody wants to wait for a warning."""


@dataclass(frozen=True)
class OpenInput:
    """A column, and the sides on which it has no limit."""

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
    """Those inputs; none where there was no time to be sure."""
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
    made[problem.outputs] = True  # what one network gives and another reads is limited by the first
    which = inputs[(below | above)[inputs] & ~made[inputs]]
    return tuple(OpenInput(int(j), mip.column_name(int(j)), bool(below[j]), bool(above[j])) for j in which)


def _read_by_networks(problem: Problem) -> IntArray:
    """What predictors read that were trained on something: a quadratic term holds everywhere."""
    trained = [block for block in problem.blocks if block.description.quadratic is None]
    if len(trained) == len(problem.blocks):
        return problem.inputs
    none = np.empty(0, dtype=np.int64)
    return np.unique(np.concatenate([none, *(block.inputs.ravel() for block in trained)]))


LATE, LONGER = 0.5, 4.0
"""The part of a solve after which a gain is late, and how many times as long to try then."""

NO_GAP, SMALL_GAP, ROUNDING = 1e-9, 1e-3, 0.05
"""Gaps that a margin may explain; and how much more than the margin a class at it may have, of the margin."""
TELL = "; with data= the result says whether the solution leaves the training data"
"""Of use where it was not given."""


@dataclass(frozen=True, eq=False)
class Finding:
    """What a run leaves behind that hints rest on."""

    problem: Problem
    context: SolveContext
    host: HostRelaxation
    conclusion: Conclusion
    method: str
    open_inputs: tuple[OpenInput, ...] = ()
    extrapolations: tuple[Extrapolation, ...] = ()

    @property
    def x(self) -> FloatArray | None:
        """The answer."""
        return self.context.incumbent.x


def hints(found: Finding) -> tuple[str, ...]:
    """All that apply."""
    kinds = (_infeasible, _nearly_feasible, _bounds, _longer, _another_method, _margin, _training_data)
    return tuple(hint for kind in kinds for hint in kind(found))


def warning(open_inputs: Sequence[OpenInput]) -> str:
    """What is said before the search begins; "" where there is nothing to warn of."""
    if not open_inputs:
        return ""
    named = listed([str(each) for each in open_inputs])
    return f"unbounded inputs: {named}; only the extrapolation of the networks limits the search there"


def _infeasible(found: Finding) -> Iterator[str]:
    """The host alone has no point: what would have to give way."""
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
    """No candidate passed: what the nearest one would have needed."""
    incumbent = found.context.incumbent
    without = found.conclusion.status in (Status.NO_SOLUTION, Status.INFEASIBLE)
    if not without or found.host.infeasible or incumbent.nearest_x is None:
        return
    missed = widenings(found.problem.mip, incumbent.nearest_x)
    if missed and _only_limits_are_missed(incumbent.nearest):
        yield f"the nearest candidate would pass with {_changes(missed)}"


def _only_limits_are_missed(violation: Violation | None) -> bool:
    """Whether wider limits are all that the candidate needs: its classes are certain, its integers whole."""
    others = () if violation is None else (violation.integrality, violation.prediction)
    return all(kind.amount <= TOLERANCE for kind in others)


def _longer(found: Finding) -> Iterator[str]:
    """More time, where the run shows that it may help."""
    conclusion, seconds = found.conclusion, found.context.budget.seconds
    if conclusion.stop_reason is not StopReason.TIME:
        return
    more = f"time_limit={_round(LONGER * seconds):g}"
    if conclusion.status is Status.NO_SOLUTION:
        yield f"{more}: the time limit ended the solve before a candidate passed the check"
        return
    when = _last_visible_gain(found.context.monitor.trace.incumbents)
    if conclusion.status is Status.FEASIBLE and when > LATE * seconds:
        yield f"{more}: the last improvement came late, after {when:.1f} of {seconds:.1f} s"


def _last_visible_gain(gains: Sequence[Gain]) -> float:
    """When the objective became what it is, as far as the log's digits show it; 0 where nothing was found."""
    return next((gain.seconds for gain in gains if number(gain.value) == number(gains[-1].value)), 0.0)


def _another_method(found: Finding) -> Iterator[str]:
    """The default tries several ways."""
    if found.conclusion.status is Status.NO_SOLUTION and found.method != "auto":
        yield f'method="auto", which combines several methods: {found.method} found no solution'


def _margin(found: Finding) -> Iterator[str]:
    """A small gap that may be what classes keep from their threshold: the search does, a bound never."""
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
    """Whether a class is decided by no more than the margin; of probabilities that is less of the value."""
    if x is None:
        return False
    lead = block.lead(block.predictor.predict(x[block.inputs]))
    return bool(np.min(lead) <= (1.0 + ROUNDING) * block.epsilon)


def _bounds(found: Finding) -> Iterator[str]:
    """Inputs that nothing limits, and where the answer has them."""
    told = [each for each in found.open_inputs if not _within_training_data(found, each.column)]
    if not told:
        return
    x = found.x
    named = [str(each) if x is None else f"{each}, {x[each.column]:.6g} here" for each in told]
    more = "" if _has_training_data(found, told) else TELL
    yield f"bounds for {listed(named)}: only the extrapolation of the networks limits them{more}"


def _has_training_data(found: Finding, told: Sequence[OpenInput]) -> bool:
    """Whether all networks that read these columns say what they saw in training."""
    columns = [each.column for each in told]
    readers = [block for block in found.problem.blocks if np.isin(block.inputs, columns).any()]
    return all(block.training_range is not None for block in readers)


def _within_training_data(found: Finding, column: int) -> bool:
    """Whether all networks that read the column say what they saw in training, and the answer is in it."""
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
    """The answer lies beyond what networks saw."""
    outside = notable(found.extrapolations)
    if outside:
        yield f"bounds within the training data: {several(len(outside), 'input is', 'inputs are')} outside"


def _changes(widened: tuple[Widening, ...]) -> str:
    return listed([str(one) for one in widened])


def _round(seconds: float) -> float:
    """To one digit: nobody asks for 13.7 s."""
    return max(1.0, float(f"{seconds:.0e}"))
