"""Problems on which Theorem 1 can be put to the test, small enough to be enumerated.

    min  g(x)   over whole x in [-3, 3]^p,   g(u) = 1/2 u'Qu - b'u  convex,  L = largest eigenvalue of Q

Families: *whole*; *rows*, with a row on x; *apart*, where X and C are both there and have no point in
common, which Assumption 1 does not exclude; *continuous*, without integers; and *small rho*, with
rho = 0.3 L against the assumption. In all others rho = 1.5 L > L.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import dovetail as dt
from dovetail.experiments.run import Record

FAMILIES = ("continuous", "whole", "rows", "apart", "small rho")
ASSUMED = FAMILIES[:-1]
"""The families in which every assumption of Theorem 1 holds."""
COLUMNS, REACH = 3, 3
"""7^3 whole points: enumerated in no time."""
STEPS = 45
"""Gradient steps per network step: each leaves at most 2/5 of the error, so these leave 1e-18 of it."""


class Convex(nn.Module):
    """g(u) = 1/2 u'Qu - b'u."""

    Q: Tensor
    b: Tensor

    def __init__(self, Q: np.ndarray, b: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("Q", torch.as_tensor(Q))
        self.register_buffer("b", torch.as_tensor(b))

    def forward(self, u: Tensor) -> Tensor:
        """(n, p) -> (n, 1)."""
        value: Tensor = (0.5 * (u @ self.Q) * u - u * self.b).sum(dim=1, keepdim=True)
        return value


class Example:
    """One problem of a family."""

    def __init__(self, family: str, seed: int) -> None:
        rng = np.random.default_rng([seed, FAMILIES.index(family)])
        self.family = family
        if family == "apart":
            self.Q = np.diag(rng.uniform(1.0, 4.0, COLUMNS))
            self.b = self.Q @ (rng.integers(-2, 2, COLUMNS) + 0.5)  # the minimum lies between whole points
        else:
            root = rng.standard_normal((COLUMNS, COLUMNS))
            self.Q = root @ root.T + 0.1 * np.eye(COLUMNS)
            self.b = self.Q @ rng.uniform(-2.0, 2.0, COLUMNS)
        self.row = rng.integers(1, 4, COLUMNS).astype(float)
        self.smoothness = float(np.linalg.eigvalsh(self.Q)[-1])
        self.rho = (0.3 if family == "small rho" else 1.5) * self.smoothness

    def value(self, points: np.ndarray) -> np.ndarray:
        """g at each row."""
        return np.asarray(0.5 * np.einsum("ij,jk,ik->i", points, self.Q, points) - points @ self.b)

    @property
    def most(self) -> float:
        """The largest g that C allows: halfway between its least value and its least at a whole point."""
        if self.family != "apart":
            return np.inf
        lowest = -0.5 * self.b @ np.linalg.solve(self.Q, self.b)
        return float(0.5 * (lowest + self.value(self.whole_points()).min()))

    def problem(self) -> dt.Problem:
        """The problem, g as its network."""
        p = COLUMNS
        rows: dict[str, Any] = {}
        if self.family == "rows":
            rows = {"A": [[*self.row, 0.0]], "row_lower": [-np.inf], "row_upper": [1.0]}
        mip = dt.Mip(
            cost=[0.0] * p + [1.0],
            lower=[-float(REACH)] * p + [-np.inf],
            upper=[float(REACH)] * p + [self.most],
            integer=[self.family != "continuous"] * p + [False],
            **rows,
        )
        problem = dt.Problem(mip)
        problem.add_predictor(Convex(self.Q, self.b), list(range(p)), [p], name="g")
        return problem

    def method(self, iterations: int) -> dt.DualDecomposition:
        """Algorithm 1 as the proof has it: rho fixed, nothing scaled, both steps exact, no early end."""
        solver = dt.ProjectedGradient(
            steps=STEPS, lr=1.0 / (self.smoothness + self.rho), rule="gradient", decay=False, keep_best=False
        )
        return dt.DualDecomposition(
            rho=self.rho, nn_solver=solver, tolerance=1e-300, movement=None, iterations=iterations,
            penalty=dt.FixedPenalty(), scaling="none", mip_gap=0.0, both_starts=False, patience=None,
        )  # fmt: skip

    def whole_points(self) -> np.ndarray:
        """Every point of X."""
        every = np.array(list(itertools.product(range(-REACH, REACH + 1), repeat=COLUMNS)), dtype=float)
        return every[every @ self.row <= 1.0] if self.family == "rows" else every

    def truth(self) -> Record:
        """The optimum, and how many points of X satisfy the theorem's KKT system, by trying them all."""
        if self.family in ("continuous", "apart"):
            lowest = float(-0.5 * self.b @ np.linalg.solve(self.Q, self.b))
            return {"optimum": lowest if self.family == "continuous" else None, "points": None, "kkt": None}
        X = self.whole_points()
        slopes = X @ self.Q - self.b
        apart = X[:, None, :] - X[None, :, :]  # from the second to the first
        change = np.einsum("ijk,jk->ij", apart, slopes) + 0.5 * self.rho * (apart**2).sum(axis=2)
        return {
            "optimum": float(self.value(X).min()),
            "points": len(X),
            "kkt": int((change.min(axis=0) >= -1e-9).sum()),
        }
