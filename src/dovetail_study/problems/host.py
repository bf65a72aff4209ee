"""The host of a problem as a user writes it down: variables one after the other, then constraints by name."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from dovetail.core.arrays import IntArray
from dovetail.core.mip import Mip
from dovetail.core.problem import Problem

Term = tuple[float, Any]
"""A coefficient and its variable."""


class Host:
    """Collects variables and linear constraints, and makes a `Mip` of them."""

    def __init__(self, sense: Literal["min", "max"] = "min") -> None:
        self._sense = sense
        self._names: list[str] = []
        self._lower: list[float] = []
        self._upper: list[float] = []
        self._cost: list[float] = []
        self._integer: list[bool] = []
        self._rows: list[tuple[str, list[Term], float, float]] = []

    def variable(
        self,
        name: str,
        lower: float = 0.0,
        upper: float = np.inf,
        *,
        cost: float = 0.0,
        integer: bool = False,
    ) -> int:
        """A new variable, with its coefficient in the objective; its column."""
        self._names.append(name)
        self._lower.append(float(lower))
        self._upper.append(float(upper))
        self._cost.append(float(cost))
        self._integer.append(integer)
        return len(self._names) - 1

    def variables(
        self,
        kind: str,
        *indices: Sequence[object],
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
        cost: ArrayLike = 0.0,
        integer: bool = False,
    ) -> IntArray:
        """A new variable kind[i,j,...] for each combination of indices; their columns, in that shape."""
        shape = tuple(map(len, indices))
        limits = (np.broadcast_to(given, shape).ravel().tolist() for given in (lower, upper, cost))
        made = [
            self.variable(f"{kind}[{','.join(map(str, place))}]", low, high, cost=price, integer=integer)
            for place, low, high, price in zip(itertools.product(*indices), *limits, strict=True)
        ]
        return np.array(made).reshape(shape)

    def binary(self, name: str, *, cost: float = 0.0) -> int:
        """A new variable that is 0 or 1."""
        return self.variable(name, 0.0, 1.0, cost=cost, integer=True)

    def output(self, name: str, lower: float = -np.inf, upper: float = np.inf, *, cost: float = 0.0) -> int:
        """A new variable that a predictor computes: it has no bounds unless some are given."""
        return self.variable(name, lower, upper, cost=cost)

    def known(self, name: str, value: float) -> int:
        """A variable with a fixed value, which a predictor reads."""
        return self.variable(name, value, value)

    def choice(self, name: str, options: int, *, cost: Sequence[float] | None = None) -> IntArray:
        """Binaries of which exactly one is 1."""
        costs = [0.0] * options if cost is None else cost
        chosen = [self.binary(f"{name}[{k}]", cost=costs[k]) for k in range(options)]
        self.row(name, [(1.0, binary) for binary in chosen], 1.0, 1.0)
        return np.array(chosen)

    def row(self, name: str, terms: Iterable[Term], lower: float = -np.inf, upper: float = np.inf) -> None:
        """lower <= sum of the terms <= upper."""
        self._rows.append((name, list(terms), float(lower), float(upper)))

    def equal(self, name: str, column: Any, terms: Iterable[Term], constant: Any = 0.0) -> None:
        """column = sum of the terms + constant."""
        self.row(name, [(1.0, column), *((-factor, j) for factor, j in terms)], constant, constant)

    def problem(self) -> Problem:
        """The problem, still without predictors."""
        rows = len(self._rows)
        entries = [(i, j, factor) for i, (_, terms, _, _) in enumerate(self._rows) for factor, j in terms]
        place_i, place_j, factors = zip(*entries, strict=True) if entries else ((), (), ())
        A = sp.coo_array((factors, (place_i, place_j)), shape=(rows, len(self._names)))
        mip = Mip(
            cost=self._cost,
            A=A if rows else None,
            row_lower=[lower for _, _, lower, _ in self._rows],
            row_upper=[upper for _, _, _, upper in self._rows],
            lower=self._lower,
            upper=self._upper,
            integer=self._integer,
            sense=self._sense,
            names=self._names,
            row_names=[name for name, _, _, _ in self._rows],
        )
        return Problem(mip)
