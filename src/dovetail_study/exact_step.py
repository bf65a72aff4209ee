"""A network step solved to the end, as the proofs of docs/theory.md assume it.

The loop's own sub-solvers take a few steps and stay in the box of the inputs. Here u is free but for C,
and steps are taken until they are lost in rounding: for gradients of g that change by less than rho times
the move each leaves a fixed part of the error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from dovetail.run.budget import Budget
from dovetail.run.network_step import AugmentedTerms, NetworkAnswer, NetworkBlock

STILL = 1e-15
"""Relative to u: a shorter step is rounding."""
MOST = 2000
"""Steps: rho = 0.3 L, the slowest, needs about 150 for 1e-15."""


@dataclass(frozen=True)
class Slab:
    """lower <= a'u <= upper: the one kind of C whose projection is a formula."""

    a: np.ndarray
    lower: float
    upper: float

    def holds(self, points: np.ndarray) -> np.ndarray:
        """Which rows lie in it."""
        activity = points @ self.a
        return np.asarray((activity >= self.lower) & (activity <= self.upper))

    def nearest(self, u: np.ndarray) -> np.ndarray:
        """The point of it nearest to u."""
        activity = float(u @ self.a)
        beyond = activity - min(max(activity, self.lower), self.upper)
        return np.asarray(u - self.a * (beyond / (self.a @ self.a)))


@dataclass(frozen=True)
class ExactStep:
    """Projected gradient steps on g(u) + lambda'u + rho/2 |u - x|^2 over C, until nothing moves."""

    slope: Callable[[np.ndarray], np.ndarray]
    """The gradient of g."""
    C: Slab
    length: float
    """Of a step: one over the largest curvature."""
    prices: list[float] = field(default_factory=list)
    """The norm of every lambda that came by."""

    name = "exact"

    def refuses(self, block: NetworkBlock) -> str | None:
        """Takes the one block it was made for."""
        return None

    def solve(
        self, block: NetworkBlock, terms: AugmentedTerms, start: Tensor, budget: Budget
    ) -> NetworkAnswer:
        """The least point, from `start`."""
        x, multiplier = terms.x[0].numpy(), terms.multiplier[0].numpy()
        rho = float(terms.weight[0, 0])
        self.prices.append(float(np.linalg.norm(multiplier)))
        u = start[0].numpy()
        for _ in range(MOST):
            before = u
            u = self.C.nearest(u - self.length * (self.slope(u) + multiplier + rho * (u - x)))
            if np.abs(u - before).max() <= STILL * max(1.0, np.abs(u).max()):
                break
        answer = torch.as_tensor(u).unsqueeze(0)
        with torch.no_grad():
            values = block.values(answer)
        return NetworkAnswer(answer, values, terms.value(answer, values), torch.zeros(1, dtype=torch.float64))
