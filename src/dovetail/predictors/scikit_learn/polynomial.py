"""scikit-learn's PolynomialFeatures: products of features, in the order in which scikit-learn multiplies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dovetail.core.arrays import IntArray
from dovetail.predictors.scikit_learn.modules import dense

Powers = tuple[int, ...]
"""The exponent of each feature in a monomial."""


def polynomial_features(estimator: Any) -> Iterator[nn.Module]:
    """Of any degrees; a linear layer where no feature is multiplied by another."""
    powers = np.asarray(estimator.powers_, dtype=np.int64).reshape(-1, estimator.n_features_in_)
    degrees = powers.sum(axis=1)
    if degrees.max(initial=0) <= 1:
        yield dense(powers, (degrees == 0).astype(np.float64))
    else:
        yield Monomials(powers)


class Monomials(nn.Module):
    """Each is its first feature times a monomial of one degree less: as many roundings as scikit-learn's."""

    def __init__(self, powers: IntArray) -> None:
        super().__init__()
        levels = _levels([tuple(map(int, row)) for row in powers], powers.shape[1])
        self._degree = len(levels)
        for degree, monomials in enumerate(levels[1:], start=2):
            before = {monomial: place for place, monomial in enumerate(levels[degree - 2])}
            first = [_first(monomial) for monomial in monomials]
            rest = [before[_without(monomial, at)] for monomial, at in zip(monomials, first, strict=True)]
            self._keep(f"_first{degree}", first)
            self._keep(f"_rest{degree}", rest)
        squares = [_first(monomial) for monomial in levels[1] if max(monomial) == 2]
        self._squares = len(squares)
        """Of degree 2, squares come first: their least value is known."""
        order = [(0,) * powers.shape[1], *(monomial for level in levels for monomial in level)]
        place = {monomial: at for at, monomial in enumerate(order)}
        self._keep("_chosen", [place[tuple(map(int, row))] for row in powers])
        self._chosen: Tensor

    def _keep(self, name: str, places: list[int]) -> None:
        self.register_buffer(name, torch.tensor(places, dtype=torch.int64))

    def forward(self, values: Tensor) -> Tensor:
        """One row per sample."""
        levels = [values]
        for degree in range(2, self._degree + 1):
            first, rest = getattr(self, f"_first{degree}"), getattr(self, f"_rest{degree}")
            made = []
            if degree == 2 and self._squares:
                made.append(torch.square(values[:, first[: self._squares]]))
                first, rest = first[self._squares :], rest[self._squares :]
            if len(first):
                made.append(values[:, first] * levels[-1][:, rest])
            levels.append(torch.cat(made, dim=1))
        one = torch.ones_like(values[:, :1])
        return torch.cat([one, *levels], dim=1)[:, self._chosen]


def _levels(wanted: list[Powers], features: int) -> list[list[Powers]]:
    """All monomials that are needed on the way, degree by degree from 1; squares first."""
    top = max(map(sum, wanted))
    needed: list[set[Powers]] = [set() for _ in range(top + 1)]
    for monomial in wanted:
        needed[sum(monomial)].add(monomial)
    for degree in range(top, 1, -1):
        needed[degree - 1] |= {_without(monomial, _first(monomial)) for monomial in needed[degree]}
    singles = [tuple(map(int, row)) for row in np.eye(features, dtype=np.int64)]
    return [singles, *(sorted(level, key=_squares_first) for level in needed[2:])]


def _squares_first(monomial: Powers) -> tuple[int, Powers]:
    return -max(monomial), monomial


def _first(monomial: Powers) -> int:
    return next(at for at, power in enumerate(monomial) if power)


def _without(monomial: Powers, at: int) -> Powers:
    return tuple(power - (place == at) for place, power in enumerate(monomial))
