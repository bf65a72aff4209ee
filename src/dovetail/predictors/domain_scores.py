"""Functions that say how far an input is from training data: values and slopes, without a known program.

The gauge of a convex hull is the factor by which the hull must be scaled, from the mean of its points, to
reach an input z:

    g(z) = min { sum of l_i : sum of l_i p_i = z, l >= 0 } = max { a'z : a'p_i <= 1 for all i }

g is convex, at most 1 inside the hull, and its gradient `a` is a facet of the hull. Facets are found as they
are needed, by the dual simplex method for many inputs at once: a facet is a basis of r points, and a facet
that was found for one input is where the search for the next one begins.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.spatial import cKDTree

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.description import Description
from dovetail.predictors.function import ByNumpy

FLAT = 1e-9
"""Relative to the widest direction of the data: narrower directions have no width."""
SHAKE, ROUNDING = 1e-10, 1e-11
"""The limits of the points are raised by random amounts of this size, so that no step has length 0 when many
points lie in one plane; and the negative weight that counts as 0."""
KEPT = 4096
"""Number of facets that are kept: comparing 10,000 inputs with them takes as long as two steps."""
AT_ONCE = 2**20
"""Numbers of a table over inputs and points: it stays in the processor's cache."""


def spread_of(points: FloatArray) -> FloatArray:
    """(d,) the standard deviation of each feature; 1 for features that do not vary."""
    return np.asarray(np.where(np.ptp(points, axis=0) > 0.0, np.std(points, axis=0), 1.0))


class Whitened:
    """Points in coordinates in which they have mean 0 and variance 1 in each of r directions."""

    def __init__(self, points: FloatArray) -> None:
        scale = spread_of(points)
        self.centre = points.mean(axis=0)
        _, sizes, turned = np.linalg.svd((points - self.centre) / scale, full_matrices=True)
        wide = sizes > FLAT * max(1.0, sizes.max(initial=0.0))
        wide = np.append(wide, np.zeros(len(turned) - len(wide), dtype=bool))
        spread = sizes[wide[: len(sizes)]] / np.sqrt(len(points))
        self.matrix = turned[wide].T / scale[:, None] / spread
        """(d, r): whitened = (x - centre) @ matrix."""
        self.flat = turned[~wide] / scale
        """(d - r, d) directions in which the points do not differ."""
        self.points = (points - self.centre) @ self.matrix
        """(m, r)."""


class Scores(ABC):
    """A predictor with one output that knows its slopes, of inputs some of which it does not read."""

    def __init__(self, name: str, reads: IntArray, features: int) -> None:
        self._name, self._reads, self._features = name, reads, features

    @abstractmethod
    def values_and_slopes(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n,) and (n, reads)."""

    def predict(self, X: FloatArray) -> FloatArray:
        """(n, 1)."""
        return self.values_and_slopes(X[:, self._reads])[0][:, None]

    def snapshot(self, device: str) -> Callable[[Any], Any]:
        """The same function with its slopes."""
        return lambda inputs: ByNumpy.apply(inputs, self.predict, self._all_slopes)  # type: ignore[no-untyped-call]

    def describe(self, X: FloatArray) -> Description:
        """A function without a program."""
        return Description(self._name, features=self._features, outputs=1)

    def _all_slopes(self, X: FloatArray) -> FloatArray:
        slopes = np.zeros((self._features, len(X), 1))
        slopes[self._reads, :, 0] = self.values_and_slopes(X[:, self._reads])[1].T
        return slopes


class Distance(Scores):
    """The distance to the k-th nearest of some points, each coordinate divided by its scale."""

    def __init__(
        self, points: FloatArray, scale: FloatArray, neighbours: int, reads: IntArray, features: int
    ) -> None:
        super().__init__(f"distance to {len(points)} points", reads, features)
        self._points, self._scale, self._neighbours = points / scale, scale, neighbours
        self._tree = cKDTree(self._points)

    def values_and_slopes(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The slope at a training point is 0."""
        z = X / self._scale
        far, which = self._tree.query(z, k=[self._neighbours])
        way = (z - self._points[which[:, 0]]) / self._scale
        return far[:, 0], np.divide(way, far, out=np.zeros_like(way), where=far > 0.0)

    def kept(self, share: float) -> float:
        """The distance within which this share of the points has its neighbours."""
        return float(np.quantile(self._tree.query(self._points, k=[self._neighbours + 1])[0], share))


class Gauge(Scores):
    """The gauge of the hull of some points."""

    def __init__(self, white: Whitened, reads: IntArray, features: int) -> None:
        super().__init__(f"hull of {len(white.points)} points", reads, features)
        self._white, self._points = white, white.points
        self._limits = 1.0 + SHAKE * np.random.default_rng(0).random(len(white.points))
        first = self._first_basis()
        self._bases, self._inverses = first[None], np.linalg.inv(self._points[first])[None]

    def values_and_slopes(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The slope is the facet that the ray to an input passes."""
        z = (X - self._white.centre) @ self._white.matrix
        facets = self._facets_at(z)
        return np.einsum("nr,nr->n", facets, z), facets @ self._white.matrix.T

    def _first_basis(self) -> IntArray:
        """r independent points of a facet: from a = 0 along directions that leave the points met so far."""
        points, rng = self._points, np.random.default_rng(1)
        facet, basis = np.zeros(points.shape[1]), list[int]()
        for _ in range(points.shape[1]):
            met = points[basis]
            along = rng.normal(size=points.shape[1])
            along -= np.linalg.pinv(met) @ (met @ along) if basis else 0.0
            ahead, room = points @ along, self._limits - points @ facet
            ahead[basis] = 0.0
            steps = np.divide(room, ahead, out=np.full(len(points), np.inf), where=ahead > FLAT)
            basis.append(int(np.argmin(steps)))
            facet = facet + steps[basis[-1]] * along
        return np.array(basis)

    def _facets_at(self, z: FloatArray) -> FloatArray:
        """(n, r) the facet that the ray to each input passes."""
        found = np.empty_like(z)
        for some in range(0, len(z), rows := max(1, AT_ONCE // max(len(self._points), len(self._bases)))):
            found[some : some + rows] = self._searched(z[some : some + rows])
        return found

    def _searched(self, z: FloatArray) -> FloatArray:
        facets = np.einsum("krs,ks->kr", self._inverses, self._limits[self._bases])
        begin = np.argmax(z @ facets.T, axis=1)
        bases, inverses, facets = self._bases[begin], self._inverses[begin], facets[begin]
        new, open_ = np.zeros(len(z), dtype=bool), np.arange(len(z))
        for _ in range(20 + 10 * z.shape[1]):
            weights = np.einsum("nrs,nr->ns", inverses[open_], z[open_])
            leaving = np.argmin(weights, axis=1)
            left = np.arange(len(open_)), leaving
            wrong = weights[left] < -ROUNDING * (1.0 + np.abs(z[open_]).max(axis=1))
            open_, leaving = open_[wrong], leaving[wrong]
            if not open_.size:
                break
            new[open_] = True
            along = -inverses[open_, :, leaving]
            ahead, room = along @ self._points.T, self._limits - facets[open_] @ self._points.T
            np.put_along_axis(ahead, bases[open_], 0.0, axis=1)
            steps = np.divide(
                np.maximum(room, 0.0), ahead, out=np.full(ahead.shape, np.inf), where=ahead > FLAT
            )
            entering = np.argmin(steps, axis=1)
            bases[open_, leaving] = entering
            inverses[open_] = np.linalg.inv(self._points[bases[open_]])
            facets[open_] = np.einsum("nrs,ns->nr", inverses[open_], self._limits[bases[open_]])
        for i in open_:
            facets[i] = self._by_lp(z[i])
        new[open_] = False
        fresh = np.flatnonzero(new)[np.unique(np.sort(bases[new], axis=1), axis=0, return_index=True)[1]]
        self._bases = np.concatenate([bases[fresh], self._bases])[:KEPT]
        self._inverses = np.concatenate([inverses[fresh], self._inverses])[:KEPT]
        return np.asarray(facets)

    def _by_lp(self, z: FloatArray) -> FloatArray:
        """The same facet by an LP, for an input at which the search took too long."""
        answer = linprog(-z, A_ub=self._points, b_ub=self._limits, bounds=(None, None))
        return np.asarray(answer.x)
