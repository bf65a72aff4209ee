"""Families of problems on which Theorem 1 can be put to the test, small enough to be enumerated.

    min  g(x)   over whole x in X, a part of [-3, 3]^p, and in C
    g(u) = 1/2 u'Qu - b'u,  with the eigenvalues of Q between -m and L

Three things are varied, one at a time: whether g is convex (m = 0), what C is, and rho, as a multiple of the
value that the repaired theorem of docs/theory.md requires: the larger of L and 2m.

A network step solved to the end, as the proofs of docs/theory.md assume it.

The loop's own sub-solvers take a few steps and stay in the box of the inputs. Here u is limited by C only,
and steps are taken until they are below rounding: if gradients of g change by less than rho times the move,
each step reduces the error by a fixed factor.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import dovetail as dt
from dovetail.run.budget import Budget
from dovetail.run.network_step import AugmentedTerms, NetworkAnswer, NetworkBlock
from dovetail_study.experiment import Record

STILL = 1e-15
"""Relative to u: a shorter step is rounding."""
MOST = 2000
"""Steps: rho = 0.3 L, the slowest, needs about 150 for 1e-15."""


@dataclass(frozen=True)
class Slab:
    """lower <= a'u <= upper: the only kind of C with a closed-form projection."""

    a: np.ndarray
    lower: float
    upper: float

    def holds(self, points: np.ndarray) -> np.ndarray:
        """Which rows of `points` satisfy the limits."""
        activity = points @ self.a
        return np.asarray((activity >= self.lower) & (activity <= self.upper))

    def nearest(self, u: np.ndarray) -> np.ndarray:
        """The nearest point to u that satisfies the limits."""
        activity = float(u @ self.a)
        beyond = activity - min(max(activity, self.lower), self.upper)
        return np.asarray(u - self.a * (beyond / (self.a @ self.a)))


@dataclass(frozen=True)
class ExactStep:
    """Projected gradient steps on g(u) + lambda'u + rho/2 |u - x|^2 over C, until the point stops moving."""

    slope: Callable[[np.ndarray], np.ndarray]
    """The gradient of g."""
    C: Slab
    length: float
    """The step length: one over the largest curvature."""
    prices: list[float] = field(default_factory=list)
    """The norm of every lambda that came by."""

    name = "exact"

    def refuses(self, block: NetworkBlock) -> str | None:
        """Accepts every block."""
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


COLUMNS, REACH = 3, 3
"""7^3 whole points: enumerated in no time."""
CURVATURES = 0.1, 4.0
"""Between these the eigenvalues of Q are drawn: flat and sharp directions in one problem."""


@dataclass(frozen=True)
class TheoremFamily:
    """The common properties of its problems."""

    name: str
    factor: float = 1.5
    """rho over the larger of L and 2m."""
    whole: bool = True
    row: bool = False
    """Whether x has a row in addition to its box."""
    convex: bool = True
    limit: str = ""
    """The kind of C: no limit; *binding* (points of X on both sides, the minimum of g outside C), *apart*
    (between points of X, none inside) or *separated* (beyond all of X)."""

    @property
    def assumed(self) -> bool:
        """Every assumption of Theorem 1 holds."""
        return self.convex and self.factor > 1.0

    @property
    def repaired(self) -> bool:
        """Every assumption of the repaired theorem holds."""
        return not self.limit and self.factor > 1.0


FAMILIES = (
    TheoremFamily("continuous", whole=False),
    TheoremFamily("whole"),
    TheoremFamily("rows", row=True),
    TheoremFamily("rho 1.01 L", factor=1.01),
    TheoremFamily("C binds", limit="binding"),
    TheoremFamily("X, C apart", limit="apart"),
    TheoremFamily("X, C separated", limit="separated"),
    TheoremFamily("not convex, rho 2.5 L", convex=False, factor=1.25),
    TheoremFamily("rho 0.95 L", factor=0.95),
    TheoremFamily("rho 0.3 L", factor=0.3),
    TheoremFamily("not convex, rho 1.9 L", convex=False, factor=0.95),
)
BY_NAME = {family.name: family for family in FAMILIES}


class QuadraticNetwork(nn.Module):
    """u -> g(u) and a'u, the two outputs that the objective and C are about."""

    Q: Tensor
    b: Tensor
    a: Tensor

    def __init__(self, Q: np.ndarray, b: np.ndarray, a: np.ndarray) -> None:
        super().__init__()
        for name, array in (("Q", Q), ("b", b), ("a", a)):
            self.register_buffer(name, torch.as_tensor(array))

    def forward(self, u: Tensor) -> Tensor:
        """(n, p) -> (n, 2)."""
        g = (0.5 * (u @ self.Q) * u - u * self.b).sum(dim=1)
        return torch.stack([g, u @ self.a], dim=1)


class Example:
    """One problem of a family."""

    def __init__(self, family: TheoremFamily, seed: int, instance: int = 0) -> None:
        rng = np.random.default_rng([seed, instance, FAMILIES.index(family)])
        self.family = family
        curvature = rng.uniform(*CURVATURES, COLUMNS)
        if not family.convex:  # as far below zero as above: m = L
            curvature = curvature.max() * np.array([-1.0, rng.uniform(-1.0, 1.0), 1.0])
        turn = np.linalg.qr(rng.standard_normal((COLUMNS, COLUMNS)))[0]
        self.Q = turn.T @ np.diag(curvature) @ turn
        self.level = rng.uniform(-2.0, 2.0, COLUMNS)  # the stationary point of g; if convex, its minimum
        self.b = self.Q @ self.level
        self.row = rng.integers(1, 4, COLUMNS).astype(float)
        self.slab = self._slab(rng)
        self.L, self.m = float(curvature.max()), max(0.0, -float(curvature.min()))
        self.rho = float(family.factor * max(self.L, 2.0 * self.m))

    def _slab(self, rng: np.random.Generator) -> Slab:
        """C, as limits on a'u."""
        a = rng.standard_normal(COLUMNS)
        if self.family.limit == "binding":
            return Slab(a, -np.inf, float(a @ self.level - np.linalg.norm(a) * rng.uniform(0.2, 1.5)))
        if self.family.limit == "apart":  # a is whole, and so is a'x: never between two whole numbers
            below = float(np.floor(self.row @ self.level))
            return Slab(self.row, below + 0.25, below + 0.75)
        if self.family.limit == "separated":
            return Slab(a, float(REACH * np.abs(a).sum() + 0.1 * np.linalg.norm(a)), np.inf)
        return Slab(a, -np.inf, np.inf)

    def value(self, points: np.ndarray) -> np.ndarray:
        """g at each row."""
        return np.asarray(0.5 * np.einsum("ij,jk,ik->i", points, self.Q, points) - points @ self.b)

    def slope(self, u: np.ndarray) -> np.ndarray:
        """The gradient of g."""
        return np.asarray(u @ self.Q - self.b)

    @property
    def fall(self) -> float:
        """kappa of the repaired lemma: the merit decreases by at least kappa |u(k) - u(k-1)|^2."""
        rho, L, m = self.rho, self.L, self.m
        return min((rho + 2 * L) * (rho - L), (rho + m) * (rho - 2 * m)) / (2 * rho)

    def problem(self) -> dt.Problem:
        """The problem, with g as its network and C as the limits of the network's second output."""
        p, slab = COLUMNS, self.slab
        rows: dict[str, Any] = {}
        if self.family.row:
            rows = {"A": [[*self.row, 0.0, 0.0]], "row_lower": [-np.inf], "row_upper": [1.0]}
        mip = dt.Mip(
            cost=[0.0] * p + [1.0, 0.0],
            lower=[-float(REACH)] * p + [-np.inf, slab.lower],
            upper=[float(REACH)] * p + [np.inf, slab.upper],
            integer=[self.family.whole] * p + [False, False],
            **rows,
        )
        problem = dt.Problem(mip)
        problem.add_predictor(QuadraticNetwork(self.Q, self.b, slab.a), list(range(p)), [p, p + 1], name="g")
        return problem

    def method(self, step: ExactStep, iterations: int) -> dt.DualDecomposition:
        """Algorithm 1 as in the proof: fixed rho, no scaling, exact steps, no early end."""
        return replace(
            dt.DualDecomposition.paper(), rho=self.rho, nn_solver=step, tolerance=1e-300, mip_gap=0.0,
            iterations=iterations,
        )  # fmt: skip

    def step(self) -> ExactStep:
        """The network step of this problem."""
        return ExactStep(self.slope, self.slab, 1.0 / (self.rho + self.L))

    def whole_points(self) -> np.ndarray:
        """Every point of X."""
        every = np.array(list(itertools.product(range(-REACH, REACH + 1), repeat=COLUMNS)), dtype=float)
        return every[every @ self.row <= 1.0] if self.family.row else every

    def truth(self) -> Record:
        """The optimum, the common points of X and C, and the KKT points among them, by enumeration."""
        if not self.family.whole:
            lowest = float(-0.5 * self.b @ np.linalg.solve(self.Q, self.b))
            return {"optimum": lowest, "points": None, "kkt": None}
        X = self.whole_points()
        shared = X[self.slab.holds(X)]
        away = X[:, None, :] - shared[None, :, :]  # from a shared point to any of X
        change = np.einsum("ijk,jk->ij", away, self.slope(shared)) + 0.5 * self.rho * (away**2).sum(axis=2)
        return {
            "optimum": float(self.value(shared).min()) if len(shared) else None,
            "points": len(shared),
            "kkt": int((change.min(axis=0) >= -1e-9).sum()),
        }
