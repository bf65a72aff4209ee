"""Log barrier for the network step (the paper's interior method).

    min  objective(u) - mu * sum log(slack)        slack: distance to each finite bound and each row

for mu = mu0, 0.1 mu0, ... : Newton steps by conjugate gradients (five of them), shortened so that every point
stays strictly inside. Idea: many rows on the network's outputs make a projection expensive, but not a
barrier. Advice: keep the default of `mu`. Weakness: slower than projected gradient if there is only a box;
needs an interior, so equality rows are refused by name; the set is not convex, so the search for a first
interior point may fail on a feasible set: those samples use projected gradient instead, and the answer
reports it.

Curvature is exact where the network is smooth, through second derivatives of the whole objective.
A ReLU network has none: only the Gauss-Newton part is used there.
`variant="l-bfgs-b"` is the paper's set-up section (an L-BFGS-B update, the box as bounds); the
default "newton-cg" is its experiment E5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from dovetail.core.options import require_choice, require_count, require_number
from dovetail.nn.projected_gradient import (
    ProjectedGradient,
    into_box,
    project,
    values_and_jacobian,
    values_only,
    violation,
)
from dovetail.run.budget import Budget
from dovetail.run.network_step import AugmentedTerms, NetworkAnswer, NetworkBlock, Rows

INSIDE = 1e-3
"""Starting points keep this fraction of the box width from its bounds."""
MARGINS = (1e-2, 1e-4, 1e-6)
"""Margins for a first point strictly inside the rows, tried in turn, relative to the width of a row's
limits."""


@dataclass(frozen=True)
class LogBarrier:
    """A sub-solver of Algorithm 1: Newton or quasi-Newton steps on a log barrier.

    >>> import dovetail as dt
    >>> dt.DualDecomposition(nn_solver=dt.LogBarrier(variant="l-bfgs-b")).nn_solver.variant
    'l-bfgs-b'
    """

    mu: float = 0.1
    """The first value; in objective units."""
    shrink: float = 0.1
    """The factor from one mu to the next."""
    smallest_mu: float = 1e-7
    newton_steps: int = 4
    """Newton steps at each mu; the next one starts near its own minimum."""
    cg_steps: int = 5
    """Steps of conjugate gradients in a Newton step: the paper's."""
    variant: Literal["newton-cg", "l-bfgs-b"] = "newton-cg"

    def __post_init__(self) -> None:
        require_choice("LogBarrier: variant", self.variant, ("newton-cg", "l-bfgs-b"))
        require_number("LogBarrier: smallest_mu", self.smallest_mu, above=0.0)
        require_number("LogBarrier: mu", self.mu, at_least=self.smallest_mu)
        require_number("LogBarrier: shrink", self.shrink, above=0.0, below=1.0)
        require_count("LogBarrier: newton_steps", self.newton_steps, at_least=1)
        require_count("LogBarrier: cg_steps", self.cg_steps, at_least=1)

    @property
    def name(self) -> str:
        """For logs."""
        return f"log-barrier ({self.variant})"

    def refuses(self, block: NetworkBlock) -> str | None:
        """Equality rows, which have no interior."""
        if block.rows is None:
            return None
        equal = torch.nonzero(block.rows.lower == block.rows.upper)
        if len(equal):
            i, k = (int(entry) for entry in equal[0])
            return (
                f"{block.rows.names[i][k]} is an equality on {block.name}'s output, which has no "
                "interior; use nn_solver=ProjectedGradient(), or give the constraint two different limits."
            )
        return None

    def solve(
        self, block: NetworkBlock, terms: AugmentedTerms, start: Tensor, budget: Budget
    ) -> NetworkAnswer:
        """Minimise the step's objective from a strictly interior point near `start`."""
        u, inside = interior_start(block, start)
        if bool(inside.any()):
            barrier = Barrier(block.take(inside), terms.take(inside))
            u = u.clone()
            u[inside] = self._central_path(barrier, u[inside], budget)
        note = ""
        if not bool(inside.all()):
            outside = ~inside
            rescued = ProjectedGradient().solve(
                block.take(outside), terms.take(outside), start[outside], budget
            )
            u = u.clone()
            u[outside] = rescued.u
            note = (
                f"{block.name}: no interior point for {int(outside.sum())} samples, projected gradient used"
            )
        values = values_only(block, u)
        value = terms.value(u, block.outputs(values))
        return NetworkAnswer(u, values, value, violation(block, u, values), note)

    def _central_path(self, barrier: Barrier, u: Tensor, budget: Budget) -> Tensor:
        """Follow the central path: minimise at one mu after the other, each from the last."""
        mu = self.mu
        while mu >= self.smallest_mu and not budget.over:
            if self.variant == "newton-cg":
                u = newton_cg(barrier, u, mu, self.newton_steps, self.cg_steps, budget)
            else:
                u = l_bfgs_b(barrier, u, mu, self.newton_steps * self.cg_steps, budget)
            mu *= self.shrink
        return u


def interior_start(block: NetworkBlock, start: Tensor) -> tuple[Tensor, Tensor]:
    """Points strictly inside box and rows near `start`, and the samples for which this worked."""
    width = (block.upper - block.lower).clamp(max=1.0 / INSIDE)
    lower = torch.where(width > 0, block.lower + INSIDE * width, block.lower)
    upper = torch.where(width > 0, block.upper - INSIDE * width, block.upper)
    shrunk = replace(block, lower=lower, upper=upper)
    u = into_box(shrunk, start)
    if block.rows is None:
        return u, torch.ones(len(u), dtype=torch.bool, device=u.device)
    inside = _strictly_met(block, block.rows, u)
    for margin in MARGINS:
        if bool(inside.all()):
            break
        room = _margins(block.rows, margin)
        tightened = replace(
            shrunk,
            rows=replace(block.rows, lower=block.rows.lower + room, upper=block.rows.upper - room),
        )
        trial = project(tightened, u)
        reached = ~inside & _strictly_met(block, block.rows, trial)
        u = torch.where(reached.unsqueeze(1), trial, u)
        inside = inside | reached
    return u, inside


def _margins(rows: Rows, part: float) -> Tensor:
    """The margin of a first point in each row: at most a quarter of the row's width."""
    size = torch.where(rows.lower.isfinite(), rows.lower.abs(), torch.zeros_like(rows.lower))
    size = torch.maximum(
        size, torch.where(rows.upper.isfinite(), rows.upper.abs(), torch.zeros_like(rows.upper))
    )
    return torch.minimum(part * size.clamp(min=1.0), 0.25 * (rows.upper - rows.lower))


def _strictly_met(block: NetworkBlock, rows: Rows, u: Tensor) -> Tensor:
    activity = rows.activity(u, values_only(block, u))
    return ((activity > rows.lower) & (activity < rows.upper)).all(dim=1)


TO_THE_BOUND = 0.99
"""The largest part of the way to the nearest bound in one step (the usual value of interior-point
methods)."""
BACKTRACKS = 12
"""Largest number of halvings of a step, down to 5e-4 of it."""
SUFFICIENT_DECREASE = 1e-4
"""Armijo's constant."""
FLAT = 1e-14
"""Relative to |p|^2: smaller curvature is rounding, or negative."""
SOLVED = 1e-16
"""Relative to the first squared residual: conjugate gradients have converged."""


def newton_cg(barrier: Barrier, u: Tensor, mu: float, steps: int, cg_steps: int, budget: Budget) -> Tensor:
    """A few damped Newton steps at one mu."""
    value = barrier.value(u, mu)
    for _ in range(steps):
        if budget.over:
            break
        slope, product = barrier.expand(u, mu)
        step = _conjugate_gradients(slope, product, barrier.block.scale, cg_steps)
        u, value, moved = _line_search(barrier, u, value, slope, step, mu)
        if not moved:
            break
    return u


def _conjugate_gradients(slope: Tensor, product: Product, scale: Tensor, steps: int) -> Tensor:
    """Approximate Newton steps for all samples at once, in scaled coordinates. A sample with negative
    curvature stops with its current step, or with scaled steepest descent if it has none."""
    r = -slope * scale
    p, step = r.clone(), torch.zeros_like(r)
    rr = (r * r).sum(dim=1, keepdim=True)
    first = rr.clone()
    active = rr > 0
    for k in range(steps):
        q = product(p * scale) * scale
        curvature = (p * q).sum(dim=1, keepdim=True)
        bent = active & (curvature <= FLAT * (p * p).sum(dim=1, keepdim=True))
        if k == 0:
            step = torch.where(bent, r, step)
        active = active & ~bent
        length = torch.where(active, rr / curvature.clamp(min=TINY), torch.zeros_like(rr))
        step = step + length * p
        r = r - length * q
        now = (r * r).sum(dim=1, keepdim=True)
        active = active & (now > SOLVED * first)
        if not bool(active.any()):
            break
        p = torch.where(active, r + (now / rr.clamp(min=TINY)) * p, p)
        rr = now
    return step * scale


def _line_search(
    barrier: Barrier, u: Tensor, value: Tensor, slope: Tensor, step: Tensor, mu: float
) -> tuple[Tensor, Tensor, bool]:
    """Shorten each sample's step until it stays inside and the barrier function falls."""
    block = barrier.block
    downhill = (slope * step).sum(dim=1)
    far = torch.full_like(u, torch.inf)
    to_lower = torch.where(step < 0, (block.lower - u) / step, far)
    to_upper = torch.where(step > 0, (block.upper - u) / step, far)
    to_bound = torch.minimum(to_lower, to_upper).amin(dim=1)
    length = (TO_THE_BOUND * to_bound).clamp(max=1.0)
    waiting = downhill < 0
    anything = False
    for _ in range(BACKTRACKS):
        if not bool(waiting.any()):
            break
        trial = torch.where(waiting.unsqueeze(1), u + length.unsqueeze(1) * step, u)
        now = barrier.value(trial, mu)
        better = waiting & (now <= value + SUFFICIENT_DECREASE * length * downhill)
        anything = anything or bool(better.any())
        u = torch.where(better.unsqueeze(1), trial, u)
        value = torch.where(better, now, value)
        waiting = waiting & ~better
        length = 0.5 * length
    return u, value, anything


EDGE = 0.01
"""In units of mu: the logarithms of smaller slacks are continued by parabolas. At the minimum slacks have
the size of mu."""


def l_bfgs_b(barrier: Barrier, u: Tensor, mu: float, iterations: int, budget: Budget) -> Tensor:
    """One L-BFGS-B run at one mu over all samples together, with the box as bounds and barriers for rows."""
    from scipy.optimize import minimize  # the import takes half a second, and most solves do not need it

    block = barrier.block
    shape, device = u.shape, u.device
    scale = block.scale

    def function(flat: np.ndarray) -> tuple[float, np.ndarray]:
        point = torch.as_tensor(flat, device=device).reshape(shape) * scale
        point = into_box(block, point).detach().requires_grad_(True)
        with block.stopwatch.measure("network"):
            values = block.values(point)
            total = barrier.terms.value(point, block.outputs(values)).sum()
            if block.rows is not None:
                activity = block.rows.activity(point, values)
                slacks = torch.cat([activity - block.rows.lower, block.rows.upper - activity], dim=1)
                total = total - mu * _softened_logs(slacks, mu)
            (slope,) = torch.autograd.grad(total, point)
        return float(total.detach()), (slope * scale).reshape(-1).cpu().numpy()

    def stop_in_time(intermediate_result: object) -> None:
        if budget.over:
            raise StopIteration

    bounds = np.stack(
        [(bound / scale).reshape(-1).cpu().numpy() for bound in (block.lower, block.upper)], axis=1
    )
    found = minimize(
        function,
        (u / scale).reshape(-1).cpu().numpy(),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": iterations},
        callback=stop_in_time,
    )
    point = into_box(block, torch.as_tensor(found.x, device=device).reshape(shape) * scale)
    # a sample that violates its rows, or got worse, keeps its starting point
    better = _row_barrier(barrier, point, mu) <= _row_barrier(barrier, u, mu)
    return torch.where(better.unsqueeze(1), point, u)


def _row_barrier(barrier: Barrier, u: Tensor, mu: float) -> Tensor:
    """(n,) the objective with barriers for rows; infinite if a row is not strictly satisfied."""
    block = barrier.block
    values = values_only(block, u)
    value = barrier.terms.value(u, block.outputs(values))
    if block.rows is None:
        return value
    activity = block.rows.activity(u, values)
    slacks = torch.cat([activity - block.rows.lower, block.rows.upper - activity], dim=1)
    met = (slacks > 0).all(dim=1)
    return torch.where(met, value - mu * log_sum(slacks), torch.full_like(value, torch.inf))


def _softened_logs(slacks: Tensor, mu: float) -> Tensor:
    """Sum of logarithms, continued by parabolas below a small slack, because a line search may overshoot."""
    edge = EDGE * mu
    finite = slacks.isfinite()
    slack = torch.where(finite, slacks, torch.ones_like(slacks))
    inside = slack.clamp(min=edge).log()
    short = (slack - edge) / edge
    outside = np.log(edge) + short - 0.5 * short * short
    return torch.where(slack > edge, inside, outside).sum()


TINY = 1e-300
"""Keeps logarithms and divisions finite for infeasible slacks, whose results are not used."""

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
        """Curvature by first derivatives of the network only."""
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
        """Outputs and their Jacobian, through the class surrogate if there is one."""
        outputs = self.block.outputs(values)
        if not self.block.classifies:
            return outputs, slopes
        scaled = slopes / self.block.spread[:, None]
        if values.shape[1] == 1:
            return outputs, (outputs * (1.0 - outputs)).unsqueeze(2) * scaled
        mean = outputs.unsqueeze(1) @ scaled
        return outputs, outputs.unsqueeze(2) * (scaled - mean)


def _twice_differentiable(block: NetworkBlock, u: Tensor) -> bool:
    """Whether torch has second derivatives of the network: some fused kernels (attention) have none."""
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
