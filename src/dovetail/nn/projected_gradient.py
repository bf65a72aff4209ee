"""Projected gradient for the network step (the paper's PGD).

    u <- Proj( u - eta * direction(gradient) ),   direction: Adam's, as the paper runs it, or the
                                                  plain gradient, as its theory has it

Idea: a few cheap steps are enough, since the outer loop comes back. Steps are measured in the
block's scale (box widths by default), so that `lr` means the same on raw and standardised data.
Advice: lr 0.005 to 0.02, steps 10 to 50. Weakness: with a constant step Adam circles the minimum at
a distance of about lr (25 steps at 0.01 stop 2e-3 to 5e-3 from the minimum even of a quadratic),
so a tolerance of 1e-4 is rarely met: `decay` lets the steps shrink, `keep_best` returns the best
iterate of each sample rather than the last, and `state="kept"` lets Adam continue with the state of the
previous iteration, so that its steps shrink with its gradients. Cost: one forward and one backward pass per
step, plus a Jacobian per projection round where the block has rows on its outputs.

Back into the feasible set: the box, and rows on a sample's own inputs and network values.

Rows on f(u) make the set non-convex, so there is no exact projection. Instead: the shortest Gauss-Newton step
that meets the violated rows to first order, with the box respected, shortened until the worst violation
falls; at most `ROUNDS` times. The remaining violation is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from dovetail.core.jacobian import jacobian
from dovetail.core.options import require_choice, require_count, require_flags, require_number
from dovetail.run.budget import Budget
from dovetail.run.network_step import AugmentedTerms, NetworkAnswer, NetworkBlock, Rows

ROUNDS = 20
"""Number of Gauss-Newton steps: it converges in a few, or not at all across many pieces of a network."""
ROW_TOLERANCE = 1e-9
"""A row is satisfied if it is violated by less: the tolerance of engines."""
STEP_LENGTHS = (1.0, 0.5, 0.25, 0.1, 0.03)
"""Fractions of a step that are tried in turn."""
ACTIVE_SET_ROUNDS = 3
"""Number of times that inputs at their bounds are fixed and the step is computed again."""
RIDGE = 1e-12
"""Relative to the trace: keeps dependent rows from a singular system."""


def into_box(block: NetworkBlock, u: Tensor) -> Tensor:
    """The nearest point of the box."""
    return torch.minimum(torch.maximum(u, block.lower), block.upper)


def excess(rows: Rows, u: Tensor, values: Tensor) -> Tensor:
    """(n, m) signed row violations: positive above the upper limit, negative below the lower."""
    activity = rows.activity(u, values)
    above = (activity - rows.upper).clamp(min=0.0)
    below = (rows.lower - activity).clamp(min=0.0)
    return above - below


def violation(block: NetworkBlock, u: Tensor, values: Tensor) -> Tensor:
    """(n,) worst row violation of each sample."""
    if block.rows is None:
        return torch.zeros(len(u), dtype=u.dtype, device=u.device)
    return excess(block.rows, u, values).abs().amax(dim=1)


def project(block: NetworkBlock, u: Tensor) -> Tensor:
    """A point of the box near `u` that satisfies the block's rows, or comes close."""
    u = into_box(block, u)
    if block.rows is None:
        return u
    wrong = violation(block, u, values_only(block, u)) > ROW_TOLERANCE
    if not bool(wrong.any()):
        return u
    u = u.clone()
    u[wrong] = _repaired(block.take(wrong), u[wrong])
    return u


def _repaired(block: NetworkBlock, u: Tensor) -> Tensor:
    """Rounds of steps for samples that violate a row, until they satisfy it or stop improving."""
    assert block.rows is not None
    worst = violation(block, u, values_only(block, u))
    for _ in range(ROUNDS):
        moved, now = _gauss_newton(block, block.rows, u, worst)
        better = (now < worst) & (worst > ROW_TOLERANCE)
        if not bool(better.any()):
            break
        u = torch.where(better.unsqueeze(1), moved, u)
        worst = torch.where(better, now, worst)
    return u


def _gauss_newton(block: NetworkBlock, rows: Rows, u: Tensor, worst: Tensor) -> tuple[Tensor, Tensor]:
    """One shortened step for the samples that violate a row."""
    values, slopes = values_and_jacobian(block, u)
    residual = excess(rows, u, values)
    J = (rows.on_inputs + rows.on_values @ slopes) * block.scale.unsqueeze(1)
    J = J * (residual != 0.0).unsqueeze(2)  # satisfied rows do not affect the step
    step = _shortest_step(block, u, J, residual) * block.scale
    best_u, best_worst = u.clone(), worst.clone()
    waiting = worst > ROW_TOLERANCE
    for length in STEP_LENGTHS:
        trial = into_box(block, torch.where(waiting.unsqueeze(1), u + length * step, u))
        now = violation(block, trial, values_only(block, trial))
        better = waiting & (now < worst)
        best_u = torch.where(better.unsqueeze(1), trial, best_u)
        best_worst = torch.where(better, now, best_worst)
        waiting = waiting & ~better
        if not bool(waiting.any()):
            break
    return best_u, best_worst


def _shortest_step(block: NetworkBlock, u: Tensor, J: Tensor, residual: Tensor) -> Tensor:
    """The shortest scaled step that cancels the residual to first order, inside the box. Inputs that would
    leave their bounds are fixed there and the step is computed again with the others."""
    free = block.upper > block.lower
    step = torch.zeros_like(u)
    for _ in range(ACTIVE_SET_ROUNDS):
        held = J * free.unsqueeze(1)
        gram = held @ held.transpose(1, 2)
        ridge = RIDGE * gram.diagonal(dim1=1, dim2=2).sum(dim=1).clamp(min=1e-30)
        eye = torch.eye(gram.shape[1], dtype=u.dtype, device=u.device)
        gram = gram + ridge[:, None, None] * eye
        step = -(held.transpose(1, 2) @ torch.linalg.solve(gram, residual.unsqueeze(2))).squeeze(2)
        target = u + step * block.scale
        blocked = free & (
            ((u <= block.lower) & (target < block.lower)) | ((u >= block.upper) & (target > block.upper))
        )
        if not bool(blocked.any()):
            break
        free = free & ~blocked
    return step


def values_only(block: NetworkBlock, u: Tensor) -> Tensor:
    """Network values at `u`."""
    with block.stopwatch.measure("network"), torch.no_grad():
        return block.values(u)


def gradient(block: NetworkBlock, terms: AugmentedTerms, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The step's objective (n,), its gradient (n, d) and the network values (n, q) at `u`."""
    u = u.detach().requires_grad_(True)
    with block.stopwatch.measure("network"):
        values = block.values(u)
    value = terms.value(u, block.outputs(values))
    with block.stopwatch.measure("network"):
        (slope,) = torch.autograd.grad(value.sum(), u)
    return value.detach(), slope, values.detach()


def values_and_jacobian(block: NetworkBlock, u: Tensor) -> tuple[Tensor, Tensor]:
    """Network values (n, q) and their Jacobian (n, q, d) at `u`."""
    u = u.detach().requires_grad_(True)
    with block.stopwatch.measure("network"):
        values = block.values(u)
        slopes = jacobian(values, u)
    return values.detach(), slopes


LAST_STEP = 0.02
"""With `decay`, the last step relative to the first: with lr 0.01 the last step is twice the default
tolerance of 1e-4."""
NO_VIOLATION = 1e-7
"""Smaller violations do not count when points are compared: the check accepts ten times as much."""


@dataclass(frozen=True)
class ProjectedGradient:
    """A sub-solver of Algorithm 1: Adam or plain gradient steps, each followed by a projection.

    >>> import dovetail as dt
    >>> dt.DualDecomposition(nn_solver=dt.ProjectedGradient(steps=25, lr=0.02)).nn_solver.steps
    25
    """

    steps: int = 20
    lr: float = 0.01
    rule: Literal["adam", "gradient"] = "adam"
    decay: bool = True
    keep_best: bool = True
    state: Literal["fresh", "kept"] = "fresh"
    """Whether Adam starts anew in each network step, or keeps its moments."""

    def __post_init__(self) -> None:
        require_count("ProjectedGradient: steps", self.steps, at_least=1)
        require_number("ProjectedGradient: lr", self.lr, above=0.0)
        require_choice("ProjectedGradient: rule", self.rule, ("adam", "gradient"))
        require_flags("ProjectedGradient", self, "decay", "keep_best")
        require_choice("ProjectedGradient: state", self.state, ("fresh", "kept"))

    @classmethod
    def paper(cls) -> ProjectedGradient:
        """25 Adam steps of 0.01 with a fresh state, the best iterate."""
        return cls(steps=25, lr=0.01, decay=False)

    @property
    def name(self) -> str:
        """For logs."""
        return f"projected-gradient ({self.rule}, {self.steps} steps of {self.lr:g})"

    def refuses(self, block: NetworkBlock) -> str | None:
        """Any block is supported."""
        return None

    def solve(
        self, block: NetworkBlock, terms: AugmentedTerms, start: Tensor, budget: Budget
    ) -> NetworkAnswer:
        """Minimise the step's objective from `start`."""
        u = project(block, start)
        direction = self._direction(block)
        best = _Best()
        for t in range(self.steps):
            value, slope, values = gradient(block, terms, u)
            best.consider(u, values, value, violation(block, u, values))
            if budget.over:
                break
            step = self.lr * (LAST_STEP ** (t / max(1, self.steps - 1)) if self.decay else 1.0)
            u = project(block, u - step * block.scale * direction(slope * block.scale))
        values = values_only(block, u)
        value = terms.value(u, block.outputs(values))
        best.consider(u, values, value, violation(block, u, values), take=not self.keep_best)
        return best.answer()

    def _direction(self, block: NetworkBlock) -> Callable[[Tensor], Tensor]:
        if self.rule == "gradient":
            return steepest
        return block.kept.setdefault("adam", Adam()) if self.state == "kept" else Adam()


class _Best:
    """Sample by sample, the best point so far: smallest violation first, then smallest value."""

    def __init__(self) -> None:
        self._kept: tuple[Tensor, Tensor, Tensor, Tensor] | None = None

    def consider(
        self, u: Tensor, values: Tensor, value: Tensor, violated: Tensor, take: bool = False
    ) -> None:
        if self._kept is None or take:
            self._kept = (u, values, value, violated)
            return
        old_u, old_values, old_value, old_violated = self._kept
        now, before = violated.clamp(min=NO_VIOLATION), old_violated.clamp(min=NO_VIOLATION)
        better = (now < before) | ((now == before) & (value < old_value))
        column = better.unsqueeze(1)
        self._kept = (
            torch.where(column, u, old_u),
            torch.where(column, values, old_values),
            torch.where(better, value, old_value),
            torch.where(better, violated, old_violated),
        )

    def answer(self) -> NetworkAnswer:
        assert self._kept is not None
        u, values, value, violated = self._kept
        return NetworkAnswer(u.detach(), values, value, violated)


class Adam:
    """Adam's direction with its usual constants. Not `torch.optim.Adam`, whose first step imports the
    compiler (1.4 s) and whose bookkeeping costs more than a pass through a small network."""

    def __init__(self) -> None:
        self._steps = 0
        self._mean: Tensor | None = None
        self._square: Tensor | None = None

    def __call__(self, slope: Tensor) -> Tensor:
        """The direction for a gradient; updates the state."""
        self._steps += 1
        if self._mean is None or self._square is None:
            self._mean, self._square = 0.1 * slope, 0.001 * slope * slope
        else:
            self._mean.lerp_(slope, 0.1)
            self._square.mul_(0.999).addcmul_(slope, slope, value=0.001)
        mean = self._mean / (1.0 - 0.9**self._steps)
        square = self._square / (1.0 - 0.999**self._steps)
        return mean / square.sqrt_().add_(1e-8)


def steepest(slope: Tensor) -> Tensor:
    """The gradient itself."""
    return slope
