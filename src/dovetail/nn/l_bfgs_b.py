"""L-BFGS-B on a network step: the box as its bounds, rows as barriers (the paper's set-up section)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dovetail.nn.barrier_function import Barrier, log_sum
from dovetail.nn.projection import into_box, values_only
from dovetail.run.budget import Budget

EDGE = 0.01
"""In units of mu: slacks below are softened. At the minimum slacks are of the size of mu itself."""


def l_bfgs_b(barrier: Barrier, u: Tensor, mu: float, iterations: int, budget: Budget) -> Tensor:
    """One L-BFGS-B run at one mu over all samples together; the box is its bounds, rows are barriers."""
    from scipy.optimize import minimize  # takes half a second, and most solves never come here

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
    # a sample that left its rows, or got worse, keeps the point it came with
    better = _row_barrier(barrier, point, mu) <= _row_barrier(barrier, u, mu)
    return torch.where(better.unsqueeze(1), point, u)


def _row_barrier(barrier: Barrier, u: Tensor, mu: float) -> Tensor:
    """(n,) the objective with barriers on the rows only; infinite where a row is not strictly met."""
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
    """Sum of logarithms, continued by parabolas below a small slack: a line search may overstep."""
    edge = EDGE * mu
    finite = slacks.isfinite()
    slack = torch.where(finite, slacks, torch.ones_like(slacks))
    inside = slack.clamp(min=edge).log()
    short = (slack - edge) / edge
    outside = np.log(edge) + short - 0.5 * short * short
    return torch.where(slack > edge, inside, outside).sum()
