"""Trees of a library, one by one, converted into the flat form.

A split is a comparison that holds for all numbers up to some threshold and for none beyond. The threshold,
the largest float64 that the library sends left, is found by bisection over all float64 values, in 64
comparisons. The bisection needs no knowledge of the comparison (< or <=, after a cast, behind a scaler).

Splits without a single threshold (by a set of categories, or with a number that counts as missing and has its
own branch) cut the range of one feature into intervals, each of which goes left or right. A binary search
over the intervals takes the place of the split. The subtree below is repeated for each interval, without the
parts that cannot be reached. (A path with five intervals for each of three features becomes 125 paths; a
model beyond `MOST_NODES` is refused.) Between two categories no value is defined: the threshold is half way
between them, and their variables must be integer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.errors import PredictorError, UnsupportedError
from dovetail.core.tree_ensemble import Link, TreeEnsemble

FoldThreshold = Callable[[FloatArray], FloatArray]
"""Converts a library's thresholds to the largest float64 that it sends left."""


_SIGN = np.int64(-(2**63))
_LARGEST = np.finfo(np.float64).max


class ReadTree(NamedTuple):
    """A tree as libraries store it: children by their number in the tree, negative at leaves."""

    feature: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    value: FloatArray
    """(nodes, scores); that of splits does not matter."""
    pieces: Mapping[int, LinePieces] = {}
    """By node, splits without a single threshold; their cuts are exact in float64."""

    def categories(self) -> set[int]:
        """Features whose categories the tree splits."""
        return {int(self.feature[node]) for node, asked in self.pieces.items() if asked.are_categories}

    def reading(self, features: IntArray) -> ReadTree:
        """The same tree over other features: feature k of the tree becomes `features[k]`."""
        return self._replace(feature=np.where(self.left < 0, 0, features[np.maximum(self.feature, 0)]))

    def scaled(self, factor: float) -> ReadTree:
        """The same tree with its leaves multiplied by a number."""
        return self._replace(value=factor * self.value)

    def for_score(self, k: int, scores: int) -> ReadTree:
        """A tree of one score as a tree of several scores, which adds to score k."""
        if scores == 1:
            return self
        value = np.zeros((len(self.value), scores))
        value[:, k] = self.value[:, 0]
        return self._replace(value=value)


def assembled(
    trees: Iterable[ReadTree],
    *,
    features: int,
    base: ArrayLike,
    link: Link = "identity",
    dtype: Literal["float64", "float32"] = "float64",
    in_order: bool = False,
    fold: FoldThreshold = lambda thresholds: thresholds,
    categories: Iterable[int] = (),
) -> TreeEnsemble:
    """All trees in one list of nodes; `categories` are categorical features in addition to those that the
    splits show."""
    trees = list(trees)
    categories = {*categories, *(feature for tree in trees for feature in tree.categories())}
    if any(tree.pieces for tree in trees):
        trees, fold = [_thresholds_alone(tree, fold) for tree in trees], lambda thresholds: thresholds
    base = np.atleast_1d(np.asarray(base, dtype=np.float64))
    if not trees:
        trees = [_leaf(np.zeros(base.size))]
    sizes = np.array([len(tree.feature) for tree in trees])
    if np.any(sizes == 0):
        raise PredictorError("a tree has no nodes.")
    first = np.cumsum(sizes) - sizes
    own, start = np.arange(sizes.sum()), np.repeat(first, sizes)

    def joined(part: str) -> FloatArray:
        return np.concatenate([np.asarray(getattr(tree, part)) for tree in trees])

    left, right = joined("left"), joined("right")
    leaf = left < 0
    threshold = np.full(own.size, np.inf)
    splits = joined("threshold")[~leaf].astype(np.float64)
    if np.any(np.isnan(splits)):
        raise PredictorError("a tree has NaN for a threshold; train it again.")
    threshold[~leaf] = fold(splits)
    value = np.where(leaf[:, None], joined("value"), 0.0)
    size = np.repeat(sizes, sizes)
    if np.any((left >= size) | (right >= size) | (~leaf & (right < 0))):
        raise PredictorError("the trees are damaged: a child is no node.")
    return TreeEnsemble(
        features,
        np.where(leaf, 0, joined("feature")).astype(np.int64),
        threshold,
        np.where(leaf, own, start + left).astype(np.int64),
        np.where(leaf, own, start + right).astype(np.int64),
        value,
        first.astype(np.int64),
        base,
        link,
        dtype,
        in_order,
        tuple(sorted(categories)),
    )


def _thresholds_alone(tree: ReadTree, fold: FoldThreshold) -> ReadTree:
    splits = np.setdiff1d(np.flatnonzero(tree.left >= 0), [*tree.pieces])
    folded = fold(np.asarray(tree.threshold, dtype=np.float64)[splits])
    pieces = {int(node): threshold_piece(cut) for node, cut in zip(splits, folded, strict=True)}
    found = written_out(tree.feature, tree.left, tree.right, pieces | dict(tree.pieces))
    return ReadTree(
        np.array(found.feature),
        np.array(found.threshold),
        np.array(found.left),
        np.array(found.right),
        tree.value[found.source],
    )


def _leaf(value: FloatArray) -> ReadTree:
    none = np.full(1, -1)
    return ReadTree(np.zeros(1, dtype=np.int64), np.zeros(1), none, none, value[None, :])


def combined(ensembles: Sequence[TreeEnsemble], weights: Sequence[FloatArray]) -> TreeEnsemble:
    """sum of weights[i] times the outputs of ensembles[i]; a weight has the shape (outputs of the sum,
    outputs of the ensemble).

    A link function cannot be part of a weighted sum: such ensembles are refused.
    """
    if any(one.link != "identity" for one in ensembles):
        raise PredictorError("a sum of tree outputs after a link function is not a tree ensemble.")
    # the constants of several ensembles may cancel out, but their rounding remains: they become trees with
    # one leaf
    own = [[*trees_of(ensemble), _leaf(ensemble.base)] for ensemble in ensembles]
    trees = [
        tree._replace(value=tree.value @ by.T) for each, by in zip(own, weights, strict=True) for tree in each
    ]
    return assembled(
        trees,
        features=ensembles[0].features,
        base=np.zeros(len(weights[0])),
        dtype="float32" if any(one.dtype == "float32" for one in ensembles) else "float64",
        categories={feature for one in ensembles for feature in one.categories},
    )


def trees_of(ensemble: TreeEnsemble, pieces: Mapping[int, LinePieces] | None = None) -> Iterator[ReadTree]:
    """The trees one by one, each with its root first; `pieces` by node of the ensemble."""
    for number, root in enumerate(ensemble.roots.tolist()):
        nodes = np.flatnonzero(ensemble.tree_of == number)
        nodes = np.concatenate([[root], nodes[nodes != root]])
        place = np.zeros(len(ensemble.feature), dtype=np.int64)
        place[nodes] = np.arange(nodes.size)
        leaf = ensemble.is_leaf[nodes]
        yield ReadTree(
            ensemble.feature[nodes],
            ensemble.threshold[nodes],
            np.where(leaf, -1, place[ensemble.left[nodes]]),
            np.where(leaf, -1, place[ensemble.right[nodes]]),
            ensemble.value[nodes],
            {int(place[node]): pieces[node] for node in nodes.tolist() if node in pieces} if pieces else {},
        )


def largest_going_left(goes_left: Callable[[FloatArray], BoolArray], count: int) -> FloatArray:
    """(count,) for each question the largest float64 that goes left; -infinity if none does, infinity if all
    do.

    `goes_left` answers all questions at once, each for its own number.
    """
    yes, no = np.full(count, _rank(-_LARGEST)), np.full(count, _rank(_LARGEST) + 1)
    while np.any(no - 1 > yes):
        middle = (yes >> 1) + (no >> 1) + (yes & no & 1)
        with np.errstate(over="ignore"):
            left = goes_left(_number(middle))
        yes, no = np.where(left, middle, yes), np.where(left, no, middle)
    found = _number(yes)
    with np.errstate(over="ignore"):
        return np.where(goes_left(found), np.where(found == _LARGEST, np.inf, found), -np.inf)


def float32_at_most(thresholds: FloatArray) -> FloatArray:
    """x goes left where float32(x) <= threshold: scikit-learn's trees, and CatBoost's."""
    return largest_going_left(lambda x: x.astype(np.float32) <= thresholds, thresholds.size)


def float32_below(thresholds: FloatArray) -> FloatArray:
    """x goes left where float32(x) < threshold: XGBoost's trees."""
    return largest_going_left(lambda x: x.astype(np.float32) < thresholds, thresholds.size)


def _rank(number: float) -> np.int64:
    """Floats as integers in the same order."""
    bits = np.float64(number).view(np.int64)
    return np.int64(bits if bits >= 0 else _SIGN - bits)


def _number(rank: np.ndarray) -> FloatArray:
    bits = np.where(rank >= 0, rank, _SIGN - rank)
    return np.asarray(bits).view(np.float64)


MOST_NODES = 2**20
"""Largest number of nodes of one tree in the flat form: some hundred megabytes; trees of real models have
thousands."""
Box = dict[int, tuple[float, float]]
"""For each feature the interval that leads to a node: above the first number, and at most the second."""


class LinePieces(NamedTuple):
    """(cuts[i - 1], cuts[i]] goes left where goes_left[i]; the first and the last piece are unbounded."""

    cuts: FloatArray
    goes_left: BoolArray
    are_categories: bool = False
    """Whether only whole numbers mean something."""

    def but(self, low: float, high: float, goes_left: bool) -> LinePieces:
        """The same split, except that (low, high] goes to one side."""
        cuts = np.unique(np.concatenate([self.cuts, [low, high]]))
        ends = np.append(cuts, np.inf)
        before = self.goes_left[np.searchsorted(self.cuts, ends)]
        return self._replace(cuts=cuts, goes_left=np.where((ends > low) & (ends <= high), goes_left, before))

    def turned(self, other_way: bool) -> LinePieces:
        """The split with left and right exchanged, if requested."""
        return self._replace(goes_left=self.goes_left != other_way)

    def within(self, low: float, high: float) -> LinePieces:
        """The part of the split in (low, high]; neighbours that go the same way are joined."""
        inside = np.flatnonzero((self.cuts > low) & (self.cuts < high))
        first = int(np.searchsorted(self.cuts, low, side="right"))
        cuts, sides = self.cuts[inside], self.goes_left[first : first + inside.size + 1]
        turns = np.flatnonzero(sides[1:] != sides[:-1])
        return LinePieces(cuts[turns], sides[np.append(turns, sides.size - 1)])


def threshold_piece(cut: float) -> LinePieces:
    """A split by a single threshold."""
    return LinePieces(np.array([cut]), np.array([True, False]))


def category_pieces(categories: Iterable[int], *, goes_left: bool) -> LinePieces:
    """A split that sends a set of whole numbers to one side and all others to the other."""
    numbers = np.unique(np.fromiter(categories, dtype=np.float64))
    first = numbers[np.append(True, np.diff(numbers) > 1.0)] if numbers.size else numbers
    last = numbers[np.append(np.diff(numbers) > 1.0, True)] if numbers.size else numbers
    cuts = np.stack([first - 0.5, last + 0.5], axis=1).ravel()
    inside = np.arange(cuts.size + 1) % 2 == 1
    return LinePieces(cuts, np.where(inside, goes_left, not goes_left), are_categories=True)


class WrittenTree(NamedTuple):
    """A tree in flat form: children by number, negative at leaves; `source`: the original node of each."""

    feature: list[int]
    threshold: list[float]
    left: list[int]
    right: list[int]
    source: list[int]

    def grown(self) -> int:
        """The number of a new leaf."""
        if len(self.source) >= MOST_NODES:
            raise UnsupportedError(
                f"a tree takes more than {MOST_NODES} nodes once all its splits are thresholds; it could be "
                "trained with fewer categories, or less deep, or have fewer rules."
            )
        for part in (self.feature, self.threshold, self.source):
            part.append(0)
        self.left.append(-1)
        self.right.append(-1)
        return len(self.source) - 1


def written_out(
    feature: np.ndarray, left: np.ndarray, right: np.ndarray, pieces: dict[int, LinePieces]
) -> WrittenTree:
    """The tree whose splits are `pieces`, rewritten with thresholds alone; several nodes may come from
    one."""
    found = WrittenTree([], [], [], [], [])
    found.grown()
    waiting: list[tuple[int, int, Box]] = [(0, 0, {})]
    while waiting:
        place, node, box = waiting.pop()
        found.source[place] = node
        if left[node] < 0:
            continue
        j = int(feature[node])
        ends = box.get(j, (-np.inf, np.inf))
        asked = pieces[node].within(*ends)
        limits = [ends[0], *asked.cuts.tolist(), ends[1]]
        ways = [(0, len(asked.goes_left), place)]
        while ways:
            first, end, at = ways.pop()
            if end - first == 1:
                below = int((left if asked.goes_left[first] else right)[node])
                waiting.append((at, below, box | {j: (limits[first], limits[end])}))
            else:
                middle = (first + end) // 2
                found.feature[at], found.threshold[at], found.source[at] = j, limits[middle], node
                found.left[at], found.right[at] = found.grown(), found.grown()
                ways += [(first, middle, found.left[at]), (middle, end, found.right[at])]
    return found
