"""The barrier function of a network step: value, gradient, and products with its curvature."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from dovetail.nn.projection import values_and_jacobian, values_only
from dovetail.run.network_step import AugmentedTerms, NetworkBlock

TINY = 1e-300
"""Keeps logarithms of infeasible slacks and divisions by 0 finite; what comes of them is not used."""

Product = Callable[[Tensor], Tensor]
"""Curvature times a direction, sample by sample."""


class Barrier:
    """The barrier function of a block: value, gradient, curvature products. Fixed inputs do not move."""

    def __init__(self, block: NetworkBlock, terms: AugmentedTerms) -> None:
        self.block, self.terms = block, terms
        self.free = (block.upper > block.lower).to(block.lower.dtype)
        self._below = block.lower.isfinite() & (self.free > 0)
        self._above = block.upper.isfinite() & (self.free > 0)
        self._curved = block.smooth and _twice_differentiable(block, terms.x[:1])

    def slacks(self, u: Tensor, values: Tensor) -> Tensor:
        """(n, s) distances to every bound and row limit; infinite where there is none."""
        none = torch.full_like(u, torch.inf)
        parts = [
            torch.where(self._below, u - self.block.lower, none),
            torch.where(self._above, self.block.upper - u, none),
        ]
        rows = self.block.rows
        if rows is not None:
            activity = rows.activity(u, values)
            parts += [activity - rows.lower, rows.upper - activity]
        return torch.cat(parts, dim=1)

    def value(self, u: Tensor, mu: float) -> Tensor:
        """(n,) the barrier function; infinite outside."""
        values = values_only(self.block, u)
        slack = self.slacks(u, values)
        value = self.terms.value(u, self.block.outputs(values)) - mu * log_sum(slack)
        return torch.where((slack > 0).all(dim=1), value, torch.full_like(value, torch.inf))

    def expand(self, u: Tensor, mu: float) -> tuple[Tensor, Product]:
        """Gradient (n, d) and a function for products with the curvature."""
        if self._curved:
            return self._exact(u, mu)
        return self._gauss_newton(u, mu)

    def _exact(self, u: Tensor, mu: float) -> tuple[Tensor, Product]:
        u = u.detach().requires_grad_(True)
        with self.block.stopwatch.measure("network"):
            values = self.block.values(u)
            total = (
                self.terms.value(u, self.block.outputs(values)) - mu * log_sum(self.slacks(u, values))
            ).sum()
            (slope,) = torch.autograd.grad(total, u, create_graph=True)

        def product(direction: Tensor) -> Tensor:
            with self.block.stopwatch.measure("network"):
                (curved,) = torch.autograd.grad(slope, u, direction, retain_graph=True)
            return curved * self.free

        return slope.detach() * self.free, product

    def _gauss_newton(self, u: Tensor, mu: float) -> tuple[Tensor, Product]:
        """First derivatives only: curvature of the terms around the network, not of the network."""
        terms, rows = self.terms, self.block.rows
        values, slopes = values_and_jacobian(self.block, u)
        outputs, J = self._output_slopes(values, slopes)
        gain = terms.output_multiplier + terms.output_weight * (outputs - terms.y)
        slope = terms.multiplier + terms.weight * (u - terms.x) + (gain.unsqueeze(1) @ J).squeeze(1)
        low = torch.where(self._below, 1.0 / (u - self.block.lower), torch.zeros_like(u))
        high = torch.where(self._above, 1.0 / (self.block.upper - u), torch.zeros_like(u))
        slope = slope - mu * (low - high)
        diagonal = terms.weight + mu * (low * low + high * high)
        output_curvature, row_slopes = terms.output_weight, None
        if rows is not None:
            activity = rows.activity(u, values)
            row_slopes = rows.on_inputs + rows.on_values @ slopes
            under, over = 1.0 / (activity - rows.lower), 1.0 / (rows.upper - activity)
            slope = slope - mu * ((under - over).unsqueeze(1) @ row_slopes).squeeze(1)
            row_curvature = mu * (under * under + over * over)

        def product(direction: Tensor) -> Tensor:
            along = (J @ direction.unsqueeze(2)).squeeze(2)
            curved = diagonal * direction + ((output_curvature * along).unsqueeze(1) @ J).squeeze(1)
            if row_slopes is not None:
                along = (row_slopes @ direction.unsqueeze(2)).squeeze(2)
                curved = curved + ((row_curvature * along).unsqueeze(1) @ row_slopes).squeeze(1)
            return curved * self.free

        return slope * self.free, product

    def _output_slopes(self, values: Tensor, slopes: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs and their Jacobian, through the class surrogate where there is one."""
        outputs = self.block.outputs(values)
        if not self.block.classifies:
            return outputs, slopes
        scaled = slopes / self.block.spread[:, None]
        if values.shape[1] == 1:
            return outputs, (outputs * (1.0 - outputs)).unsqueeze(2) * scaled
        mean = outputs.unsqueeze(1) @ scaled
        return outputs, outputs.unsqueeze(2) * (scaled - mean)


def _twice_differentiable(block: NetworkBlock, u: Tensor) -> bool:
    """Whether torch knows second derivatives of the network: some fused kernels (attention) have none."""
    u = u.detach().requires_grad_(True)
    with block.stopwatch.measure("network"):
        try:
            (slope,) = torch.autograd.grad(block.values(u).sum(), u, create_graph=True)
            torch.autograd.grad(slope.sum(), u, allow_unused=True)
        except RuntimeError:
            return False
    return True


def log_sum(slack: Tensor) -> Tensor:
    """(n,) sum of logarithms of the finite slacks."""
    finite = slack.isfinite()
    safe = torch.where(finite, slack, torch.ones_like(slack)).clamp(min=TINY)
    return safe.log().sum(dim=1)
