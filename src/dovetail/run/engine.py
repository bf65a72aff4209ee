"""The interface of MIP engines and of their answers.

An engine is loaded once with a program and then solved many times for

    min  cost'x + offset + 1/2 sum_j weight_j (x_j - centre_j)^2     over the program's rows, bounds, integers

with new costs, weights and centres: everything that stays the same between iterations is prepared once, in
`load`. Only the columns named at loading may carry a weight.

The answers of engines are checked. `certified` looks at every point that comes back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import EngineError
from dovetail.core.mip import Mip
from dovetail.core.stated_program import StatedProgram
from dovetail.run.budget import Budget

ENGINE_TOLERANCE = 1e-5
"""Largest violation of rows, bounds and integrality in an engine's raw answer, relative to max(1,
|limit|)."""


Bounds = tuple[FloatArray, FloatArray]
"""Lower and upper limits, one entry per column."""


class MipStatus(StrEnum):
    """How an engine's solve ended."""

    OPTIMAL = "optimal"
    LIMIT = "limit"
    """A time, node or accuracy limit was reached; there may be a point and a bound."""
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"


@dataclass(frozen=True)
class Quadratic:
    """The objective of one solve: cost'x + offset + 1/2 sum weight_j (x_j - centre_j)^2."""

    cost: FloatArray
    offset: float
    weight: FloatArray
    """One entry per column of the program; zero outside the columns named at loading."""
    centre: FloatArray

    def value(self, x: FloatArray) -> float:
        """The objective at `x`."""
        apart = x - self.centre
        return float(self.cost @ x + self.offset + 0.5 * (self.weight * apart) @ apart)

    @classmethod
    def linear(cls, cost: FloatArray, offset: float = 0.0) -> Quadratic:
        """An objective without weights."""
        zero = np.zeros_like(cost)
        return cls(cost, offset, zero, zero)


@dataclass(frozen=True)
class MipAnswer:
    """An engine's answer, with the value recomputed from its point."""

    status: MipStatus
    x: FloatArray | None
    value: float
    """The objective at `x` in float64; infinity without a point."""
    bound: float
    """The engine's bound; -infinity without one."""

    @property
    def exact(self) -> bool:
        """Whether the engine claims to have reached the requested gap."""
        return self.status is MipStatus.OPTIMAL


Heard = Callable[[MipAnswer], None]
"""Called with the engine's current point and bound during its work."""


class MipSession(Protocol):
    """An engine with a loaded program."""

    def solve(
        self,
        objective: Quadratic,
        *,
        budget: Budget,
        start: FloatArray | None = None,
        gap: float = 1e-6,
        bounds: Bounds | None = None,
        cutoff: float = np.inf,
        heard: Heard | None = None,
    ) -> MipAnswer:
        """Minimise `objective`; the program's own cost, sense and offset are not used.

        `bounds` replaces the columns' bounds for this solve only. `gap` is relative to max(1, |value|); an
        engine with a fixed accuracy may report OPTIMAL for any gap down to 1e-6. `start` is a hint that may
        violate rows; an engine that accepts no starting points ignores it.

        Points that cost more than `cutoff` are not needed: an engine may skip them, and then sets
        `within_cutoff`. An engine without such an option ignores `cutoff`.

        If the budget's computation takes turns with others, the engine pauses while others work, and first
        passes its current point and bound to `heard`; an engine that cannot pause continues.
        """
        ...


class MipEngine(Protocol):
    """A MIP solver."""

    name: str

    def refuses(self, mip: Mip, columns: IntArray) -> str | None:
        """Why the engine cannot take `mip` with weights on `columns`, or None."""
        ...

    def load(self, mip: Mip, columns: IntArray, *, seed: int = 0, threads: int = 1) -> MipSession:
        """Build the program once; later solves change the objective only."""
        ...


def certified(
    engine: str,
    mip: Mip,
    objective: Quadratic,
    x: FloatArray,
    status: MipStatus,
    bound: float,
    bounds: Bounds | None = None,
) -> MipAnswer:
    """The engine's answer after a check of its point: finite, feasible, integers rounded. A point that fails
    the check raises an `EngineError`; a bound above the point's own value is dropped, because it cannot be
    valid."""
    lower, upper = bounds if bounds is not None else (mip.lower, mip.upper)
    if not np.all(np.isfinite(x)):
        raise EngineError(f"{engine} returned a point that is not finite.")
    x = np.clip(x, lower, upper)
    whole = np.round(x[mip.integer])
    if np.any(np.abs(whole - x[mip.integer]) > ENGINE_TOLERANCE * np.maximum(1.0, np.abs(whole))):
        raise EngineError(f"{engine} returned fractional values for integer variables.")
    x[mip.integer] = whole
    room = ENGINE_TOLERANCE * (1.0 + abs(mip.A) @ np.abs(x))
    beyond = mip.row_violation(x) - room
    if beyond.size and np.max(beyond) > 0.0:
        i = int(np.argmax(beyond))
        raise EngineError(
            f"{engine} returned a point that violates {mip.row_name(i)} by {beyond[i] + room[i]:.1e}."
        )
    value = objective.value(x)
    if np.isnan(bound) or bound > value + 1e-6 * max(1.0, abs(value)):
        bound = -np.inf
    return MipAnswer(status, x, value, min(bound, value))


def within_cutoff(answer: MipAnswer, cutoff: float) -> MipAnswer:
    """The answer of an engine that ignored points above `cutoff`. Its bound covers only the points that it
    examined, so the bound is at most the cutoff. INFEASIBLE means that no point costs `cutoff` or less;
    HiGHS calls a more expensive one optimal instead."""
    if cutoff == np.inf:
        return answer
    beyond = answer.status is MipStatus.OPTIMAL and answer.value > cutoff
    if answer.status is MipStatus.INFEASIBLE or beyond:
        return MipAnswer(MipStatus.INFEASIBLE, None, np.inf, cutoff)
    return replace(answer, bound=min(answer.bound, cutoff))


PER_NONZERO = 2.5e-6
"""Seconds per nonzero that HiGHS takes to load, presolve and solve an easy LP (water, 10,000 samples:
450,000 entries, 1.1 s)."""


def least_seconds(program: Mip | StatedProgram) -> float:
    """The least time of an LP over all rows."""
    nonzeros = program.nonzeros if isinstance(program, StatedProgram) else int(program.A.nnz)
    return PER_NONZERO * nonzeros
