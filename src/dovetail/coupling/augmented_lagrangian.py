"""The augmented Lagrangian of a MIP and its networks: the steps that a method of multipliers takes on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import EngineError, OptionError
from dovetail.core.mip import Mip
from dovetail.coupling.block_coupling import BlockCoupling, NetworkStart, mip_objective
from dovetail.run.budget import Budget
from dovetail.run.engine import MipAnswer, MipSession, MipStatus
from dovetail.run.network_step import NnSolver
from dovetail.run.result import Multipliers
from dovetail.run.stopwatch import Stopwatch
from dovetail.run.trace import Residual

Norm = Literal["largest", "euclidean"]
"""How the distance between copies and columns is measured: their largest difference, or |u - x|_2."""
LEAST_SECONDS = 1.0
"""For one MIP step, even where its share of the time is less."""


class AugmentedLagrangian:
    """A MIP in an engine, the couplings of its parts, and the point each side is at."""

    def __init__(
        self,
        mip: Mip,
        session: MipSession,
        couplings: list[BlockCoupling],
        stopwatch: Stopwatch,
        engine: str = "",
    ) -> None:
        self.mip, self.engine = mip, engine
        self.couplings = couplings
        self.x: FloatArray | None = None
        self._session, self._stopwatch = session, stopwatch

    def begin(self, x: FloatArray, multipliers: Multipliers | None) -> None:
        """Put all copies at `x`, with zero or given multipliers."""
        for coupling in self.couplings:
            coupling.begin(x)
            if multipliers is not None:
                name = coupling.name
                _take(coupling.multiplier, multipliers.inputs, name, "inputs")
                if coupling.couples_outputs:
                    _take(coupling.output_multiplier, multipliers.outputs, name, "outputs")

    def mip_step(self, rho: float, gap: float, share: float, budget: Budget) -> MipAnswer:
        """Solve the MIP with the couplings' terms; from the second time on, started from the last point.

        The engine has a `share` of the time left once it has a point, and all of it until then.
        """
        objective = mip_objective(self.mip, self.couplings, rho)
        with self._stopwatch.measure("engine"):
            for seconds in (max(share * budget.left, LEAST_SECONDS), budget.left):
                part = budget.part(seconds)
                answer = self._session.solve(objective, budget=part, start=self.x, gap=gap)
                if answer.x is not None or answer.status is not MipStatus.LIMIT:
                    break
        if answer.status in (MipStatus.INFEASIBLE, MipStatus.UNBOUNDED):
            raise EngineError(f"the MIP step is {answer.status.value}, although the host is not.")
        if answer.x is not None:
            self.x = answer.x
        return answer

    def network_step(
        self, x: FloatArray, rho: float, solver: NnSolver, budget: Budget, start: NetworkStart
    ) -> None:
        """Let each network move its copies."""
        with self._stopwatch.measure("nn"):
            for coupling in self.couplings:
                coupling.network_step(x, rho, solver, budget, start)

    def update_multipliers(self, rho: float, largest: float | None) -> None:
        """The dual step of every coupling; `largest` limits multipliers, in objective units per width."""
        for coupling in self.couplings:
            coupling.update_multipliers(rho, largest)

    def lagrangian(self, x: FloatArray, rho: float) -> float:
        """The augmented Lagrangian at the current copies and multipliers."""
        host = float(self.mip.cost @ x) + self.mip.offset
        return host + sum(coupling.lagrangian(rho) for coupling in self.couplings)

    def residuals(self, rho: float) -> tuple[Residual, ...]:
        """Every coupling's residuals."""
        return tuple(residual for coupling in self.couplings for residual in coupling.residuals(rho))

    def distances(self, norm: Norm) -> tuple[float, float]:
        """|u - x| and |u - u(k-1)| over all couplings."""
        order = np.inf if norm == "largest" else 2
        found = [pair for coupling in self.couplings for pair in coupling.differences()]
        apart = np.concatenate([apart.ravel() for _, apart, _ in found])
        moved = np.concatenate([moved.ravel() for _, _, moved in found])
        return float(np.linalg.norm(apart, order)), float(np.linalg.norm(moved, order))

    def copies(self, x: FloatArray) -> FloatArray:
        """The point `x` with the networks' copies in place of its inputs; shared inputs get the mean."""
        total, count = np.zeros_like(x), np.zeros_like(x)
        for coupling in self.couplings:
            np.add.at(total, coupling.columns, coupling.u)
            np.add.at(count, coupling.columns, 1.0)
        return np.where(count > 0, total / np.maximum(count, 1.0), x)

    def multipliers(self, rho: float) -> Multipliers:
        """The prices as they are now."""
        return Multipliers(
            {coupling.name: coupling.multiplier.copy() for coupling in self.couplings},
            {
                coupling.name: coupling.output_multiplier.copy()
                for coupling in self.couplings
                if coupling.couples_outputs
            },
            rho,
        )


def _take(target: FloatArray, given: Mapping[str, FloatArray], block: str, kind: str) -> None:
    """Copy multipliers of an earlier solve into a coupling, if they fit."""
    if block not in given:
        raise OptionError(f"start has no multipliers for the {kind} of {block!r}.")
    values = np.asarray(given[block], dtype=np.float64)
    if values.shape != target.shape or not np.all(np.isfinite(values)):
        raise OptionError(
            f"start: multipliers for the {kind} of {block!r} must be finite with shape "
            f"{target.shape}; they have shape {values.shape}."
        )
    target[:] = values
