"""The augmented Lagrangian of a MIP and its networks: the steps that a method of multipliers takes on it.

One part's coupling: its copies u, its multipliers, and their terms in both steps.

With the minimised problem's cost c and the weights W = rho k / width^2, V = rho k / spread^2,
where k is the objective's unit, the augmented Lagrangian is

    c'x + lambda'(u - x) + 1/2 |u - x|_W^2 + { d'f(u)                               inputs form
                                             { nu'(f(u) - y) + 1/2 |f(u) - y|_V^2    inputs and outputs
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from dovetail.core.arrays import FloatArray
from dovetail.core.block import classes_of
from dovetail.core.errors import EngineError, OptionError
from dovetail.core.mip import Mip
from dovetail.coupling.split import CoupledBatch
from dovetail.run.budget import Budget
from dovetail.run.engine import MipAnswer, MipSession, MipStatus, Quadratic
from dovetail.run.network_step import AugmentedTerms, NetworkBlock, NnSolver
from dovetail.run.result import Multipliers
from dovetail.run.trace import Residual
from dovetail.run.work import Stopwatch

REPORTED_VIOLATION = 1e-6
"""A larger remaining violation after a projection is reported, because the check would not accept it."""
NetworkStart = Literal["copies", "mip", "better"]
"""Where a network step starts: at u(k-1), at x(k), or at the better of the two for each sample."""


class BlockCoupling:
    """The coupling of one part with the MIP."""

    def __init__(
        self,
        part: CoupledBatch,
        network: NetworkBlock,
        cost: FloatArray,
        width: FloatArray,
        unit: float,
        *,
        scaled: bool,
    ) -> None:
        """`width` (n, d) is the unit of residuals of the inputs."""
        self.name, self.columns, self.outputs = part.name, part.columns, part.outputs
        self.network = network
        self.couples_outputs = part.couples_outputs
        self._unit = unit
        self._length = _array(network.scale)
        self._width = width
        self._spread = _output_spread(network, part.outputs.shape, scaled)
        gone = not part.couples_outputs
        self._cost = cost[part.outputs] if gone else np.zeros(part.outputs.shape)
        self.multiplier = np.zeros(part.columns.shape)
        self.output_multiplier = np.zeros(part.outputs.shape)
        self.u = np.zeros(part.columns.shape)
        self.f = np.zeros(part.outputs.shape)
        self.note = ""
        self._before: tuple[FloatArray, FloatArray] = (self.u, self.f)
        self._x, self._y = self.u, self.f

    # --- the two steps -----------------------------------------------------------------------

    def begin(self, x: FloatArray) -> None:
        """Set the copies to the values of a point."""
        start = self._tensor(x[self.columns])
        start = torch.minimum(torch.maximum(start, self.network.lower), self.network.upper)
        with torch.no_grad():
            values = self.network.values(start)
        self.u, self.f = _array(start), self._decoded(values)
        self._before = (self.u, self.f)

    def add_to_mip(self, rho: float, cost: FloatArray, weight: FloatArray, moment: FloatArray) -> None:
        """Add -lambda'x + 1/2 |u - x|_W^2, and the same for outputs, to the MIP step's objective. A column
        may be an input of several samples: their proximal terms add up, and `moment` is the sum of weight
        times centre."""
        added = [(self.columns, self.multiplier, self._input_weight(rho), self.u)]
        if self.couples_outputs:
            added.append((self.outputs, self.output_multiplier, self._output_weight(rho), self.f))
        for columns, multiplier, own_weight, centre in added:
            np.subtract.at(cost, columns, multiplier)
            np.add.at(weight, columns, own_weight)
            np.add.at(moment, columns, own_weight * centre)

    def network_step(
        self, x: FloatArray, rho: float, solver: NnSolver, budget: Budget, start: NetworkStart
    ) -> None:
        """Run the sub-solver on the copies, given the MIP's point `x`."""
        self._before = (self.u, self.f)
        self._x, self._y = x[self.columns], x[self.outputs]
        terms = self._augmented_terms(rho)
        answer = solver.solve(self.network, terms, self._start(terms, start), budget)
        self.u, self.f = _array(answer.u), self._decoded(answer.values)
        self.note = answer.note
        violation = float(answer.violation.max())
        if violation > REPORTED_VIOLATION:
            self.note += (
                f"{'; ' if self.note else ''}{self.name}: copies violate their constraints by {violation:.1e}"
            )

    def update_multipliers(self, rho: float, largest: float | None) -> None:
        """lambda += W (u - x), and the same for outputs; clipped at `largest` objective units per width."""
        most = np.inf if largest is None else largest * self._unit
        self.multiplier = np.clip(
            self.multiplier + self._input_weight(rho) * (self.u - self._x),
            -most / self._length,
            most / self._length,
        )
        if self.couples_outputs:
            self.output_multiplier = np.clip(
                self.output_multiplier + self._output_weight(rho) * (self.f - self._y),
                -most / self._spread,
                most / self._spread,
            )

    # --- sums over all couplings --------------------------------------------------------------

    def lagrangian(self, rho: float) -> float:
        """This part's terms of the augmented Lagrangian, at the current copies and multipliers."""
        apart = self.u - self._x
        total = self.multiplier * apart + 0.5 * self._input_weight(rho) * apart * apart
        if not self.couples_outputs:
            return float(total.sum() + (self._cost * self.f).sum())
        beyond = self.f - self._y
        outputs = self.output_multiplier * beyond + 0.5 * self._output_weight(rho) * beyond * beyond
        return float(total.sum() + outputs.sum())

    def differences(self) -> list[tuple[str, FloatArray, FloatArray]]:
        """u - x and u - u(k-1) for inputs, in widths, and for coupled outputs, in spreads."""
        u, f = self._before
        found = [("inputs", (self.u - self._x) / self._width, (self.u - u) / self._width)]
        if self.couples_outputs:
            found.append(("outputs", (self.f - self._y) / self._spread, (self.f - f) / self._spread))
        return found

    def residuals(self, rho: float) -> tuple[Residual, ...]:
        """Primal and dual residuals in widths and spreads, the dual times rho."""
        return tuple(
            Residual(self.name, kind, _largest(apart), rho * _largest(moved))
            for kind, apart, moved in self.differences()
        )

    # --- inside ------------------------------------------------------------------------------

    def _input_weight(self, rho: float) -> FloatArray:
        return np.asarray(rho * self._unit / (self._length * self._length))

    def _output_weight(self, rho: float) -> FloatArray:
        return np.asarray(rho * self._unit / (self._spread * self._spread))

    def _augmented_terms(self, rho: float) -> AugmentedTerms:
        if self.couples_outputs:
            y, multiplier, weight = self._y, self.output_multiplier, self._output_weight(rho)
        else:
            y = weight = np.zeros_like(self.f)
            multiplier = self._cost
        # in objective units, so that a sub-solver's absolute constants have the same meaning everywhere
        return AugmentedTerms(
            self._tensor(self._x),
            self._tensor(self.multiplier / self._unit),
            self._tensor(self._input_weight(rho) / self._unit),
            self._tensor(y),
            self._tensor(multiplier / self._unit),
            self._tensor(weight / self._unit),
        )

    def _start(self, terms: AugmentedTerms, which: NetworkStart) -> Tensor:
        """The start of the sub-solver."""
        network = self.network
        old = self._tensor(self.u)
        if which == "copies":
            return old
        new = torch.minimum(torch.maximum(terms.x, network.lower), network.upper)
        if which == "mip":
            return new
        with network.stopwatch.measure("network"), torch.no_grad():
            at_old = terms.value(old, network.outputs(network.values(old)))
            at_new = terms.value(new, network.outputs(network.values(new)))
        return torch.where((at_new < at_old).unsqueeze(1), new, old)

    def _decoded(self, values: Tensor) -> FloatArray:
        """(n, q) outputs as the problem sees them: values, or classes of logits."""
        return classes_of(_array(values)) if self.network.classifies else _array(values)

    def _tensor(self, array: FloatArray) -> Tensor:
        return torch.as_tensor(np.ascontiguousarray(array), device=self.network.device)


def mip_objective(mip: Mip, couplings: list[BlockCoupling], rho: float) -> Quadratic:
    """The MIP step's objective: the host's cost and every coupling's multiplier and proximal terms."""
    cost = mip.cost.copy()
    weight, moment = np.zeros(mip.n_columns), np.zeros(mip.n_columns)
    for coupling in couplings:
        coupling.add_to_mip(rho, cost, weight, moment)
    centre = np.divide(moment, weight, out=np.zeros_like(moment), where=weight > 0)
    return Quadratic(cost, mip.offset, weight, centre)


def _output_spread(network: NetworkBlock, shape: tuple[int, ...], scaled: bool) -> FloatArray:
    """Units of the outputs: the spread of regression values; 1 for classes."""
    if network.classifies or not scaled:
        return np.ones(shape)
    return np.broadcast_to(_array(network.spread), shape)


def _largest(array: FloatArray) -> float:
    return float(np.max(np.abs(array), initial=0.0))


def _array(tensor: Tensor) -> FloatArray:
    return np.asarray(tensor.detach().cpu().numpy())


Norm = Literal["largest", "euclidean"]
"""The norm of residuals: the largest difference, or |u - x|_2."""
LEAST_SECONDS = 1.0
"""Smallest number of seconds for one MIP step."""


class AugmentedLagrangian:
    """A MIP in an engine, the couplings of its parts, and the current point of each side."""

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
        """Set all copies to `x`, with zero or given multipliers."""
        for coupling in self.couplings:
            coupling.begin(x)
            if multipliers is not None:
                name = coupling.name
                _take(coupling.multiplier, multipliers.inputs, name, "inputs")
                if coupling.couples_outputs:
                    _take(coupling.output_multiplier, multipliers.outputs, name, "outputs")

    def mip_step(self, rho: float, gap: float, share: float, budget: Budget) -> MipAnswer:
        """Solve the MIP with the terms of the couplings, from the second time on started from the last
        point. The engine may use a `share` of the remaining time after its first point, and all of the
        time before."""
        objective = mip_objective(self.mip, self.couplings, rho)
        with self._stopwatch.measure("engine"):
            for seconds in (max(share * budget.left, LEAST_SECONDS), budget.left):
                part = budget.part(seconds)
                answer = self._session.solve(objective, budget=part, start=self.x, gap=gap)
                if answer.x is not None or answer.status is not MipStatus.LIMIT:
                    break
        if answer.status in (MipStatus.INFEASIBLE, MipStatus.UNBOUNDED):
            raise EngineError(
                f"the MIP step is {answer.status.value}, although the model without predictors is not."
            )
        if answer.x is not None:
            self.x = answer.x
        return answer

    def network_step(
        self, x: FloatArray, rho: float, solver: NnSolver, budget: Budget, start: NetworkStart
    ) -> None:
        """Run the network step of each part."""
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
        """The point `x` with the copies instead of its inputs; shared inputs get the mean."""
        total, count = np.zeros_like(x), np.zeros_like(x)
        for coupling in self.couplings:
            np.add.at(total, coupling.columns, coupling.u)
            np.add.at(count, coupling.columns, 1.0)
        return np.where(count > 0, total / np.maximum(count, 1.0), x)

    def multipliers(self, rho: float) -> Multipliers:
        """The current multipliers."""
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
