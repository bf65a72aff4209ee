"""Tree ensembles in one flat form for all libraries.

    scores(x) = base + sum over trees of the value of the leaf that x falls into        y = link(scores)

At a split x goes left where x[feature] <= threshold, in float64. Libraries compare in other ways: with < or
<=, after a cast to float32. The threshold of the flat form accounts for the library's comparison: it is the
*largest float64 that the library sends left*, so that x and the next larger number are separated exactly as
in the library. Means, learning rates and weights of trees are included in the values of the leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.errors import PredictorError
from dovetail.networks.arithmetic import FLOAT64, FORMATS, MORE, OURS, ULPS

BitArray = npt.NDArray[np.unsignedinteger]
Link = Literal["identity", "sigmoid", "both classes", "softmax", "exp", "minus exp"]
"""The function of the scores: "both classes" is (1 - p, p) for p = sigmoid of a single score; "minus exp" is
-exp(-score), which is increasing."""

CELLS, ROWS = 2**15, 2**12
"""Products of samples and trees, and samples, that are processed together, so that the nodes stay in the
processor's cache."""
BITS, MOST_CELLS = 64, 2**21
"""Largest number of leaves of a tree, and of cells of all tables, for which leaves are found by bits. (80
trees of depth 4, 20,000 rows: 0.031 CPU s, 0.085 from level to level.)"""


@dataclass(frozen=True, eq=False)
class _Exits:
    """Leaves of small trees by bits (Lucchese et al., QuickScorer, 2015): a split that a row passes to the
    right rules out the leaves on its left; the first remaining leaf is the one that the row reaches."""

    cuts: list[FloatArray]
    """(cuts,) the sorted thresholds of each feature."""
    left: list[BitArray]
    """(cuts + 1, trees) for each feature: the remaining leaves of a row whose value is above the given
    number of cuts."""
    leaf: IntArray
    """(trees, leaves) nodes, from left to right."""

    @classmethod
    def of(cls, ensemble: TreeEnsemble) -> _Exits:
        """The tables of an ensemble."""
        leaf = np.zeros((ensemble.trees, BITS), dtype=np.int64)
        first, last = np.zeros((2, len(ensemble.feature)), dtype=np.uint64)
        for tree, root in enumerate(ensemble.roots.tolist()):
            count, waiting = 0, [(root, False)]
            while waiting:
                node, seen = waiting.pop()
                if ensemble.is_leaf[node]:
                    leaf[tree, count] = node
                    first[node], last[node], count = count, count + 1, count + 1
                elif seen:
                    first[node], last[node] = first[ensemble.left[node]], last[ensemble.right[node]]
                else:
                    children = (ensemble.right[node], False), (ensemble.left[node], False)
                    waiting += [(node, True), *children]
        size = int(last.max())
        kind, one = np.dtype(np.uint32 if size < 32 else np.uint64), np.uint64(1)
        splits = np.flatnonzero(~ensemble.is_leaf)
        begin, end = first[ensemble.left[splits]], last[ensemble.left[splits]]
        out = ((one << end) - (one << begin)).astype(kind)  # end is below 64: leaves on the right remain
        cuts, tables = [], []
        for j in range(ensemble.features):
            mine = ensemble.feature[splits] == j
            at = np.unique(ensemble.threshold[splits[mine]])
            table = ~np.zeros((len(at) + 1, ensemble.trees), dtype=kind)
            place = 1 + np.searchsorted(at, ensemble.threshold[splits[mine]])
            np.bitwise_and.at(table, (place, ensemble.tree_of[splits[mine]]), ~out[mine])
            cuts.append(at)
            tables.append(np.bitwise_and.accumulate(table, axis=0))
        return cls(cuts, tables, leaf[:, :size])

    def leaves(self, X: FloatArray) -> IntArray:
        """(n, trees) the leaf of each tree that each row of `X` reaches."""
        found, first = np.empty((len(X), len(self.leaf)), dtype=np.int64), np.arange(len(self.leaf))
        some = max(1, CELLS // len(self.leaf))
        for i in range(0, len(X), some):
            left = self.left[0][np.searchsorted(self.cuts[0], X[i : i + some, 0])]
            for j in range(1, len(self.cuts)):
                if len(self.cuts[j]):
                    left &= self.left[j][np.searchsorted(self.cuts[j], X[i : i + some, j])]
            lowest = (left & (~left + left.dtype.type(1))).astype(np.float64)
            place = (lowest.view(np.int64) >> 52) - 1023  # the exponent of a power of two
            found[i : i + some] = self.leaf.ravel()[place + self.leaf.shape[1] * first]
        return found


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """Nodes of all trees in one list; a leaf is its own left and right child."""

    features: int
    """Number of features."""
    feature: IntArray
    """(nodes,) the feature of each split; 0 at leaves."""
    threshold: FloatArray
    """(nodes,) the largest float64 that goes left; infinity at leaves."""
    left: IntArray
    right: IntArray
    value: FloatArray
    """(nodes, scores) what a leaf adds to each score; 0 at splits."""
    roots: IntArray
    base: FloatArray
    """(scores,)."""
    link: Link = "identity"
    dtype: Literal["float64", "float32"] = "float64"
    """The dtype in which the library adds up leaves."""
    in_order: bool = False
    """Whether the library is known to add up tree after tree, beginning with the base. If known, the
    library's sum can be repeated to the last bit, and it is increasing in every leaf, because rounding is
    monotone."""
    categories: tuple[int, ...] = ()
    """Features that are category numbers, defined at integers only."""

    def __post_init__(self) -> None:
        self._require_numbers()
        level, seen = self.roots, np.zeros(len(self.feature), dtype=np.int64)
        while level.size:
            np.add.at(seen, level, 1)
            if np.any(seen[level] > 1):
                raise PredictorError("the trees are damaged: a node has two parents, or is its own.")
            inner = level[~self.is_leaf[level]]
            level = np.concatenate([self.left[inner], self.right[inner]])
        if not np.all(seen):
            raise PredictorError("the trees are damaged: some nodes belong to no tree.")

    def _require_numbers(self) -> None:
        count = len(self.feature)
        for children in (self.left, self.right, self.roots):
            if children.size and not (children.min() >= 0 and children.max() < count):
                raise PredictorError("the trees are damaged: a child is no node.")
        if self.feature.size and not (self.feature.min() >= 0 and self.feature.max() < self.features):
            raise PredictorError(f"the trees are damaged: a split reads no feature of {self.features}.")
        if np.any(np.isnan(self.threshold)):
            raise PredictorError("a tree has NaN for a threshold; train it again.")
        if not (np.all(np.isfinite(self.value)) and np.all(np.isfinite(self.base))):
            raise PredictorError("a tree has NaN or infinity for a leaf's value; train it again.")

    @cached_property
    def is_leaf(self) -> BoolArray:
        """(nodes,)."""
        return np.asarray(self.left == np.arange(len(self.left)))

    @cached_property
    def parent(self) -> IntArray:
        """(nodes,) the parent of each node; a root is its own parent."""
        parent = np.arange(len(self.left))
        splits = np.flatnonzero(~self.is_leaf)
        parent[self.left[splits]] = parent[self.right[splits]] = splits
        return parent

    @property
    def trees(self) -> int:
        """Number of trees."""
        return len(self.roots)

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return 2 if self.link == "both classes" else len(self.base)

    @cached_property
    def depth(self) -> int:
        """Number of splits on the longest path from a root."""
        level, depth = self.roots, 0
        while not np.all(self.is_leaf[level]):
            inner = level[~self.is_leaf[level]]
            level, depth = np.concatenate([self.left[inner], self.right[inner]]), depth + 1
        return depth

    @cached_property
    def cuts(self) -> tuple[FloatArray, ...]:
        """The thresholds of each feature, sorted and distinct, without those that no number passes."""
        return tuple(
            np.unique(self.threshold[~self.is_leaf & (self.feature == j) & np.isfinite(self.threshold)])
            for j in range(self.features)
        )

    def leaves(self, X: FloatArray) -> IntArray:
        """(n, trees) the leaf of each tree that each row of `X` reaches."""
        return self._walked(X) if self._exits is None else self._exits.leaves(X)

    def _walked(self, X: FloatArray) -> IntArray:
        """The same, from level to level."""
        some = max(1, CELLS // max(1, len(X)))
        flat, begin = np.ravel(X), X.shape[1] * np.arange(len(X))[:, None]
        found = np.empty((len(X), self.trees), dtype=np.int64)
        for first in range(0, self.trees, some):
            node = self.roots[None, first : first + some]
            for _ in range(self.depth):
                goes_left = flat[begin + self.feature[node]] <= self.threshold[node]
                node = self._children[2 * node + goes_left]
            found[:, first : first + some] = node
        return found

    @cached_property
    def _exits(self) -> _Exits | None:
        """The leaves by bits; None for large trees."""
        if not self.trees or np.bincount(self.tree_of[self.is_leaf]).max() > BITS:
            return None
        cells = sum(len(cuts) + 1 for cuts in self.cuts) * self.trees
        return _Exits.of(self) if cells <= MOST_CELLS else None

    @cached_property
    def _children(self) -> IntArray:
        return np.stack([self.right, self.left], axis=1).ravel()

    def scores(self, X: FloatArray) -> FloatArray:
        """(n, scores) base plus leaves, added as the library does, if that is known."""
        parts = [self.summed(self.value[self.leaves(X[i : i + ROWS])]) for i in range(0, len(X), ROWS)]
        return np.concatenate([np.empty((0, len(self.base))), *parts])

    def values(self, X: FloatArray) -> FloatArray:
        """(n, outputs) the answers to each row; links are computed in float64."""
        return self.linked(self.scores(X))

    def linked(self, scores: FloatArray) -> FloatArray:
        """(..., outputs) the link of (..., scores)."""
        return LINKS[self.link](scores)

    def summed(self, parts: FloatArray) -> FloatArray:
        """(..., scores) base plus (..., trees, scores) values of leaves, added as the library does."""
        if not self.in_order:
            return np.asarray(self.base + parts.sum(axis=-2))
        first = np.broadcast_to(self.base, (*parts.shape[:-2], 1, self.base.size))
        terms = np.concatenate([first, parts], axis=-2)
        return np.cumsum(terms, axis=-2, dtype=self.dtype)[..., -1, :].astype(np.float64)

    @cached_property
    def sum_error(self) -> FloatArray:
        """(scores,) the largest difference between the library's sum and `summed`."""
        return np.zeros(self.base.size) if self.in_order else self.score_error

    @cached_property
    def score_error(self) -> FloatArray:
        """(scores,) the largest difference between the library's sum and the exact one. In any order
        (Higham, 4.2): one rounding of all absolute values together per addition. Tree after tree: one
        rounding of the partial sum per addition."""
        roundoff = FORMATS[self.dtype].roundoff + OURS
        least, most = (self.base + np.cumsum(ends, axis=0) for ends in self._leaf_range)
        reached = np.maximum(np.abs(least), np.abs(most))
        size = np.abs(self.base) + np.maximum(*(np.abs(ends) for ends in self._leaf_range)).sum(axis=0)
        few = (MORE + ULPS) * size
        rounded = reached.sum(axis=0) if self.in_order else self.trees * size
        return np.asarray(1.01 * roundoff * (rounded + (0.0 if self.in_order else few)) + few * OURS)

    @cached_property
    def tree_of(self) -> IntArray:
        """(nodes,) the number of the tree of each node."""
        tree = np.empty(len(self.feature), dtype=np.int64)
        level, of = self.roots, np.arange(self.trees)
        while level.size:
            tree[level] = of
            inner = ~self.is_leaf[level]
            level, of = (
                np.concatenate([self.left[level[inner]], self.right[level[inner]]]),
                np.tile(of[inner], 2),
            )
        return tree

    @cached_property
    def _leaf_range(self) -> tuple[FloatArray, FloatArray]:
        """(trees, scores) the smallest and the largest value of a leaf."""
        leaves = self.is_leaf
        least = np.full((self.trees, len(self.base)), np.inf)
        most = -least
        np.minimum.at(least, self.tree_of[leaves], self.value[leaves])
        np.maximum.at(most, self.tree_of[leaves], self.value[leaves])
        return least, most

    @property
    def widest_output_range(self) -> tuple[FloatArray, FloatArray]:
        """(outputs,) the range of all possible outputs, rounding included."""
        least, most = (self.summed(ends) for ends in self._leaf_range)
        return self.output_range(least, most)

    def output_range(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The range of outputs for `summed` between two (..., scores) bounds, rounding included. Every link
        function is increasing in its own score, and a softmax is decreasing in the other scores."""
        low, high = low - self.sum_error, high + self.sum_error
        if self.link == "softmax":
            least, most = _softmax_range(low, high)
        elif self.link == "both classes":
            p, q = expit(low), expit(high)
            least, most = np.concatenate([1.0 - q, p], axis=-1), np.concatenate([1.0 - p, q], axis=-1)
        else:
            least, most = self.linked(low), self.linked(high)
        room = self.link_error
        return least - room * (1.0 + np.abs(least)), most + room * (1.0 + np.abs(most))

    @property
    def link_error(self) -> float:
        """Relative to 1 + |value|: the largest difference between the library's link and ours. 1 - p has no
        more digits than 1."""
        if self.link == "identity":
            return 0.0
        return 2.0 * ULPS * (FORMATS[self.dtype].roundoff + FLOAT64.roundoff)

    def reading(self, places: IntArray, features: int) -> TreeEnsemble:
        """The same trees over more features: feature k becomes `places[k]`."""
        feature = np.where(self.is_leaf, 0, places[self.feature])
        categories = tuple(places[[*self.categories]].tolist())
        return replace(self, features=features, feature=feature, categories=categories)

    def with_values(self, value: FloatArray, base: FloatArray, link: Link | None = None) -> TreeEnsemble:
        """The same splits with other values of leaves."""
        return replace(self, value=value, base=base, link=self.link if link is None else link)


def _softmax(scores: FloatArray) -> FloatArray:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def _softmax_range(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The range of each class, with the other scores at their opposite ends."""
    least, most = np.empty(low.shape), np.empty(low.shape)
    for k in range(low.shape[-1]):
        for own, others, into in ((low, high, least), (high, low, most)):
            mixed = others.copy()
            mixed[..., k] = own[..., k]
            into[..., k] = _softmax(mixed)[..., k]
    return least, most


def _exp(scores: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(scores))


LINKS: dict[Link, Callable[[FloatArray], FloatArray]] = {
    "identity": lambda scores: scores,
    "sigmoid": lambda scores: np.asarray(expit(scores)),
    "both classes": lambda scores: np.concatenate([expit(-scores), expit(scores)], axis=-1),
    "softmax": _softmax,
    "exp": _exp,
    "minus exp": lambda scores: -_exp(-scores),
}
