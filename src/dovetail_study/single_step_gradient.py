"""SSG, the paper's Algorithm 2: gradient descent on everything at once, with penalties for the rows.

    x(t) = Proj_box( x(t-1) - eta_t grad [ c'x + d'f(x) + mu_lin |p_lin|^2 + mu_nn |p_nn|^2 ] )

p_lin are the violations of rows without outputs, p_nn of rows and bounds with them. Integers are
relaxed; no solver is called in the loop.

Idea: the baseline without dual variables, cheap and parallel. Advice: use it to see the effect of the dual
update. Weakness: with these penalties rows are satisfied only approximately, so almost every point depends on
the incumbent's completion, an LP, to become feasible.

Deviations, because the paper contradicts itself:
- its text takes Adam steps, its algorithm plain ones: `rule` offers both, Adam is the default (plain
  steps of 0.01 diverge under penalties of 50 as soon as a row has many entries);
- its algorithm compares c'x alone, without d'f: the incumbent compares the whole objective;
- it tests the rows at x(t-1) and keeps x(t), and rounds after the test: here every x(t) goes
  through the incumbent's check, which rounds first and tests the rounded point;
- the ablation's text describes another method (Algorithm 1 with lambda = rho = 0, one step, round):
  that is `SingleStepGradient.one_step()`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from dovetail.bounds.box import Box
from dovetail.core.arrays import FloatArray
from dovetail.core.options import require_choice, require_count, require_number
from dovetail.coupling.assemble import network_block
from dovetail.coupling.split import split
from dovetail.nn.projected_gradient import Adam, steepest
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.network_step import SURROGATES, NetworkBlock, Surrogate
from dovetail.run.progress import Progress
from dovetail.run.trace import Residual
from dovetail.structure.boxes import TypicalRanges, input_box, typical_ranges


@dataclass(frozen=True)
class SingleStepGradient:
    """The paper's Algorithm 2 (SSG), a baseline; the defaults are the paper's.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], lower=0.0, upper=[3.0, 9.0]))
    >>> block = problem.add_predictor(lambda X: (X - 1.0) ** 2, inputs=[0], outputs=[1])
    >>> dt.solve(problem, dt.SingleStepGradient(iterations=5), log=False).status.value
    'feasible'
    """

    iterations: int = 100
    lr: float = 0.01
    decay: float = 0.01
    """The step at iteration t is lr / sqrt(1 + decay t)."""
    linear_penalty: float = 50.0
    network_penalty: float = 50.0
    rule: Literal["adam", "gradient"] = "adam"
    surrogate: Surrogate = "logit"
    """The function that replaces a class in the objective; constraints always see the scaled probability."""

    name = "single-step-gradient"
    has_residuals = True

    @classmethod
    def one_step(cls) -> SingleStepGradient:
        """The ablation as the paper's text describes it: one step on the objective alone, then rounding."""
        return cls(iterations=1, linear_penalty=0.0, network_penalty=0.0, rule="gradient")

    def __post_init__(self) -> None:
        require_count("SingleStepGradient: iterations", self.iterations, at_least=1)
        require_number("SingleStepGradient: lr", self.lr, above=0.0)
        require_number("SingleStepGradient: decay", self.decay, at_least=0.0)
        require_number("SingleStepGradient: linear_penalty", self.linear_penalty, at_least=0.0)
        require_number("SingleStepGradient: network_penalty", self.network_penalty, at_least=0.0)
        require_choice("SingleStepGradient: rule", self.rule, ("adam", "gradient"))
        require_choice("SingleStepGradient: surrogate", self.surrogate, SURROGATES)

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Forward, backward, project; every iterate is offered."""
        penalised = _Penalised(context, self.linear_penalty, self.network_penalty, self.surrogate)
        direction = Adam() if self.rule == "adam" else steepest
        x = penalised.start()
        progress = Progress(context, self.iterations)
        while True:
            # forward and backward
            loss, slope, violations = penalised.gradient(x)

            # projected step
            step = self.lr / float(np.sqrt(1.0 + self.decay * (progress.done + 1)))
            with context.stopwatch.measure("nn"):
                x = penalised.project(x - step * direction(slope))

            # completion and check
            objective = context.incumbent.offer(penalised.point(x), "x")
            outcome = progress.record(loss, objective, residuals=violations)
            if outcome is not None:
                return replace(outcome, residual=context.monitor.trace[-1].primal)


class _Penalised:
    """The whole problem as one differentiable function of its columns; outputs follow from inputs."""

    def __init__(
        self, context: SolveContext, linear_penalty: float, network_penalty: float, surrogate: Surrogate
    ) -> None:
        self._problem, self._stopwatch = context.problem, context.stopwatch
        mip = context.problem.mip.minimised()
        box = input_box(context.problem, context.budget, seed=context.seed, threads=context.threads)
        ranges = typical_ranges(context.problem, box, context.seed)
        self._device = context.device or context.problem.blocks[0].description.device
        self._networks = _networks(context, box, ranges, self._device)
        known = context.start.x if context.start.x is not None else context.incumbent.x
        self._start = known if known is not None else ranges.middle
        self._cost = self._tensor(mip.cost)
        self._lower, self._upper = self._tensor(mip.lower), self._tensor(mip.upper)
        self._row_lower, self._row_upper = self._tensor(mip.row_lower), self._tensor(mip.row_upper)
        entries = mip.A.tocoo()
        self._entries = tuple(
            torch.as_tensor(part, device=self._device)
            for part in (entries.row.astype(np.int64), entries.col.astype(np.int64), np.array(entries.data))
        )
        is_output = np.zeros(mip.n_columns, dtype=bool)
        is_output[context.problem.outputs] = True
        self._is_output = torch.as_tensor(is_output, device=self._device)
        touched = (abs(mip.A) @ is_output.astype(float)) > 0
        self._touched = torch.as_tensor(touched, device=self._device)
        self._penalties = (linear_penalty, network_penalty)
        self._surrogate = surrogate

    def start(self) -> Tensor:
        """The caller's point, otherwise the best known one (of the host alone), otherwise the middle."""
        return self.project(self._tensor(self._start))

    def project(self, x: Tensor) -> Tensor:
        """Into the bounds of the columns; outputs are overwritten anyway."""
        return torch.minimum(torch.maximum(x.detach(), self._lower), self._upper)

    def gradient(self, x: Tensor) -> tuple[float, Tensor, tuple[Residual, ...]]:
        """The penalised objective, its gradient, and the largest violation of either kind of row."""
        x = x.detach().requires_grad_(True)
        with self._stopwatch.measure("nn"):
            completed, pulling = self._completed(x)
            rows = _violation(self._activity(completed), self._row_lower, self._row_upper)
            bounds = _violation(completed, self._lower, self._upper)[self._is_output]
            linear, network = rows[~self._touched], torch.cat([rows[self._touched], bounds])
            loss = self._cost @ pulling
            for weight, violation in zip(self._penalties, (linear, network), strict=True):
                loss = loss + weight * violation.square().sum()
            (slope,) = torch.autograd.grad(loss, x)
        worst = tuple(
            Residual(kind, "rows", float(violation.detach().max()) if violation.numel() else 0.0, 0.0)
            for kind, violation in (("linear", linear), ("network", network))
        )
        return float(loss.detach()), slope, worst

    def _activity(self, completed: Tensor) -> Tensor:
        row, column, entry = self._entries
        return torch.zeros_like(self._row_lower).index_add(0, row, entry * completed[column])

    def point(self, x: Tensor) -> FloatArray:
        """The columns as numbers; outputs are the incumbent's business."""
        return np.array(x.detach().cpu().numpy())

    def _completed(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """All columns, in topological order: with classes as constraints and as the objective see them."""
        completed = torch.where(self._is_output, torch.zeros_like(x), x)
        pulling = completed
        for stage in self._problem.stages:
            for block, samples in stage:
                network = self._networks[block.name]
                with self._stopwatch.measure("network"):
                    values = network.values(
                        completed[torch.as_tensor(block.inputs[samples], device=self._device)]
                    )
                columns = torch.as_tensor(block.outputs[samples], device=self._device)
                completed = completed.index_put((columns,), network.outputs(values))
                pulls = replace(network, surrogate=self._surrogate)
                pulling = pulling.index_put((columns,), pulls.outputs(values))
        return completed, pulling

    def _tensor(self, array: FloatArray) -> Tensor:
        return torch.tensor(array, dtype=torch.float64, device=self._device)


def _violation(values: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """How far each value lies outside its limits; 0 inside."""
    return (values - upper).clamp(min=0.0) + (lower - values).clamp(min=0.0)


def _networks(context: SolveContext, box: Box, ranges: TypicalRanges, device: str) -> dict[str, NetworkBlock]:
    """Frozen networks, all on one device, with the spreads their class surrogates need; nothing is scaled."""
    unscaled = np.ones(context.problem.mip.n_columns)
    blocks = {}
    for part in split(context.problem).parts:
        blocks[part.name] = network_block(
            part, box.lower, box.upper, unscaled, ranges.points, device, context.stopwatch
        )
    return blocks
