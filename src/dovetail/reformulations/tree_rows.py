"""Tree ensembles beside networks, or behind each other, written as rows; the networks stay blocks.

The result is a problem of networks alone, with a binary for each cut, for all methods that know networks.
Points are looked for a margin inside the cells, where engines' tolerances do not matter. Bounds are proved of
closed cells, and of rows as far out as the check accepts: trees jump.

An ensemble has a binary for each cut of an input, not for each leaf (Misic, 2020):

    u[j,k] binary    input j is in its cell k or below       u[j,k] <= u[j,k+1]
    z[t,l] >= 0      tree t is in its leaf l                 sum over l of z[t,l] = 1
    leaves left of a split  <= u of its cut                  leaves right of it  <= 1 - u of its cut
    x[j] <= last high - sum dhigh[k] u[j,k]                  x[j] >= last low - sum dlow[k] u[j,k]
    y = base + sum of value z

Cuts of a column are shared by all trees, samples and blocks that read it, and only those in the host's box
are written. Whole binaries make the leaf weights whole. Cells are closed, so that no point is cut off, and
outputs may differ from the sum by the library's rounding, so that a bound of this MIP is a bound of the
problem. Its points may be on the wrong side of a cut by less than the tolerance of engines, and are moved
into their cells when they are mapped back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dovetail.bounds.box import UNIT, Box
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.class_rounding import logit
from dovetail.core.mip import SMALLEST, TOLERANCE
from dovetail.core.problem import Problem
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.core.words import several
from dovetail.reformulations.reformulated import Reformulated
from dovetail.reformulations.writer import Writer
from dovetail.structure.boxes import reached_box
from dovetail.structure.trees import LeafBoxes, TreeProblem, TreeSample, ensembles_of, in_cells


class Weights(NamedTuple):
    """The leaf weights of a sample: scores are base + value' z[columns]."""

    columns: IntArray
    value: FloatArray
    base: FloatArray
    starts: IntArray
    """The first leaf of each tree."""

    def ranges(self) -> tuple[FloatArray, FloatArray]:
        """(scores,) ranges of the sums, of all entries or of those that engines keep, rounded outward."""
        least, most = (
            end.reduceat(self.value, self.starts, axis=0).sum(axis=0) for end in (np.minimum, np.maximum)
        )
        size = np.abs(self.base) + np.maximum.reduceat(np.abs(self.value), self.starts, axis=0).sum(axis=0)
        room = self.unsaid(self.value) + 2.0 * UNIT * (self.starts.size + 2) * size
        return self.base + least - room, self.base + most + room

    def unsaid(self, entries: FloatArray) -> FloatArray:
        """The largest sum of those of (leaves, ...) entries that engines would drop."""
        small = np.where(np.abs(entries) < SMALLEST, np.abs(entries), 0.0)
        return np.asarray(np.maximum.reduceat(small, self.starts, axis=0).sum(axis=0))


def writable(sample: TreeSample) -> bool:
    """Whether the outputs are linear in the weights: sums of leaves, or classes of these."""
    return sample.block.classifies or sample.boxes.ensemble.link == "identity"


def write_outputs(writer: Writer, sample: TreeSample, weights: Weights) -> None:
    """Rows that hold for every output that the library can give, rounding included."""
    ensemble, block = sample.boxes.ensemble, sample.block
    room = ensemble.score_error + weights.unsaid(weights.value)
    if not block.classifies:
        for o, y in enumerate(sample.outputs):
            columns, values = np.append(weights.columns, y), np.append(-weights.value[:, o], 1.0)
            writer.row(columns, values, weights.base[o] - room[o], weights.base[o] + room[o])
    elif sample.outputs.size == 1:
        _one_class(writer, weights, int(sample.outputs[0]), _cuts(ensemble, block.threshold), float(room[0]))
    elif ensemble.link == "both classes":
        writer.row(sample.outputs, np.ones(2), 1.0, 1.0)
        _one_class(writer, weights, int(sample.outputs[1]), _cuts(ensemble, 0.5), float(room[0]))
    else:
        # the largest of K probabilities is at least 1 / K: an error of it is K times as large, relative
        tie = 2.0 * ensemble.link_error * sample.outputs.size
        _largest(writer, weights, sample.outputs, ensemble.score_error + tie)


def _cuts(ensemble: TreeEnsemble, threshold: float) -> tuple[float, float]:
    """Two scores: below the first the class is 0, from the second on 1; in between rounding decides."""
    off = ensemble.link_error * (1.0 + abs(threshold))
    below, above = (_score_at(ensemble, value) for value in (threshold - off, threshold + off))
    return below - _score_rounding(below), above + _score_rounding(above)


def _score_rounding(score: float) -> float:
    """A bound on the rounding of a computed score."""
    return 4.0 * float(np.finfo(float).eps) * (1.0 + abs(score)) if np.isfinite(score) else 0.0


def _score_at(ensemble: TreeEnsemble, value: float) -> float:
    """The score of an output value; infinite if there is none."""
    if ensemble.link == "identity":
        return value
    if ensemble.link == "minus exp":
        return -float(np.log(-value)) if value < 0.0 else np.inf
    if ensemble.link == "exp":
        return float(np.log(value)) if value > 0.0 else -np.inf
    return logit(value)


def _one_class(writer: Writer, weights: Weights, y: int, cuts: tuple[float, float], room: float) -> None:
    """y = 1 if the score reaches the cuts, 0 below them; either if rounding may decide."""
    (low, high), base = (float(end[0]) for end in weights.ranges()), float(weights.base[0])
    below, above = cuts[0] - room, cuts[1] + room
    if low >= above or high < below:
        known = 1.0 if low >= above else 0.0
        writer.row([y], np.ones(1), known, known)
        return
    least, most = max(low, min(below, high)), min(high, max(above, low))
    if high - most < SMALLEST:  # an entry that engines would drop, and scores above `most` with it
        most = high
    columns, score = np.append(weights.columns, y), weights.value[:, 0]
    # score >= low (1 - y) + least y,   score <= high y + most (1 - y)
    writer.row(columns, np.append(score, low - least), low - base, np.inf)
    writer.row(columns, np.append(score, most - high), -np.inf, most - base)


def _largest(writer: Writer, weights: Weights, outputs: IntArray, room: FloatArray) -> None:
    """One class is 1, and no score exceeds its own."""
    low, high = weights.ranges()
    writer.row(outputs, np.ones(outputs.size), 1.0, 1.0)
    for k, y in enumerate(outputs):
        for j in range(outputs.size):
            if j != k:
                entries = weights.value[:, k] - weights.value[:, j]
                unsaid = float(weights.unsaid(entries))
                ahead = -(room[k] + room[j] + unsaid)
                least = min(low[k] - high[j] - unsaid, ahead)
                # score_k - score_j >= least (1 - y) + ahead y
                writer.row(
                    np.append(weights.columns, y),
                    np.append(entries, least - ahead),
                    least - weights.base[k] + weights.base[j],
                    np.inf,
                )


MOST_CUTS = 5_000
"""Largest number of binaries of all inputs: with more, engines find no point in a minute."""


@dataclass(frozen=True, eq=False)
class TreeSplits:
    """Writes the tree ensembles of a problem as rows; other blocks stay."""

    trees: TreeProblem
    margin: bool = False
    """Whether inputs keep a margin above their cuts: for points, not for a bound."""
    name = "tree ensembles as rows"

    def apply(self, given: Reformulated) -> Reformulated | None:
        """The problem with these trees as rows, or None if an output is no sum of leaves."""
        if not all(map(writable, self.trees.samples)):
            return None
        return _Writing(self.trees, given, self.margin).written()


class _Writing:
    """One problem while it is written as rows."""

    def __init__(self, trees: TreeProblem, given: Reformulated, margin: bool) -> None:
        self._trees, self._given = trees, given
        self._low = trees.cells.inner if margin else trees.cells.low
        self._writer = Writer(given.problem.mip.n_columns)
        cells = trees.cells
        cuts = cells.cuts
        self._binaries = self._writer.columns(np.zeros(cuts), np.ones(cuts), integer=True)
        self._first = cells.first[:-1] - np.arange(cells.columns.size)
        """The first binary of each column, which has one less than cells."""

    def written(self) -> Reformulated:
        """Write cuts, then samples."""
        for place in range(self._trees.cells.columns.size):
            self._cuts(place)
        weights = [self._sample(sample) for sample in self._trees.samples]
        mip, host = self._given.problem.mip, self._trees.host
        held = replace(
            mip,
            lower=np.where(host.integer, host.lower, np.clip(mip.lower, host.lower, host.upper)),
            upper=np.where(host.integer, host.upper, np.clip(mip.upper, host.lower, host.upper)),
            integer=host.integer,
        )  # where points are looked for, bounds of their own may be tighter than those of the cells
        note = (
            f"tree ensembles as constraints: {several(self._binaries.size, 'threshold')}, "
            f"{sum(part.columns.size for part in weights):,} leaves"
        )
        written = {block.name for block in self._trees.problem.blocks}
        rest = tuple(block for block in self._given.problem.blocks if block.name not in written)
        problem = self._given.problem.derived(self._writer.extend(held), rest)
        return Reformulated(problem, self._given, (self._fill,), self._settled, note=note)

    def _cuts(self, place: int) -> None:
        """Ordered binaries, and the input in the cell that they choose."""
        cells = self._trees.cells
        own = slice(cells.first[place], cells.first[place + 1])
        count = int(cells.counts[place]) - 1
        u = self._binaries[self._first[place] + np.arange(count)]
        for k in range(count - 1):
            self._writer.row([u[k], u[k + 1]], np.array([1.0, -1.0]), -np.inf, 0.0)
        if count == 0:
            return
        j, low, high = cells.columns[place], self._low[own], cells.high[own]
        columns = np.append(u, j)
        self._writer.row(columns, np.append(np.diff(high), 1.0), -np.inf, high[-1])
        step = np.diff(low)
        unsaid = float(step[np.abs(step) < SMALLEST].sum())  # entries that engines would drop
        self._writer.row(columns, np.append(step, 1.0), low[-1] - unsaid, np.inf)

    def _sample(self, sample: TreeSample) -> Weights:
        """Leaves, splits and outputs of a sample."""
        boxes, writer = sample.boxes, self._writer
        z = writer.columns(np.zeros(boxes.leaves), np.ones(boxes.leaves))
        for tree in np.split(z, boxes.starts[1:]):
            writer.row(tree, np.ones(tree.size), 1.0, 1.0)
        for split, is_left, leaves in _sides(boxes):
            place, cut = boxes.place[boxes.ensemble.feature[split]], boxes.cut[split]
            u = self._binaries[self._first[place] + cut]
            entries, side = np.append(np.ones(leaves.size), -1.0 if is_left else 1.0), 0.0 if is_left else 1.0
            writer.row(np.append(z[leaves], u), entries, -np.inf, side)
        weights = Weights(z, boxes.value, boxes.ensemble.base, boxes.starts)
        write_outputs(writer, sample, weights)
        return weights

    def _settled(self, z: FloatArray) -> FloatArray:
        """Inputs moved inside the cells of the binaries, because engines violate limits slightly."""
        first, cuts = self._given.problem.mip.n_columns, self._trees.cells.cuts
        chosen = z[first : first + cuts]
        if np.any(np.abs(chosen - np.round(chosen)) > TOLERANCE):
            return z
        return self._trees.cells.moved_into(z, cells_of(self._trees, first, z))

    def _fill(self, x: FloatArray) -> FloatArray:
        """Binaries and leaf weights at a point of the problem."""
        cells = self._trees.cells.of_point(x)
        parts = [
            (np.arange(count - 1) >= cell).astype(float)
            for cell, count in zip(cells, self._trees.cells.counts, strict=True)
        ]
        for sample in self._trees.samples:
            weight = np.zeros(sample.boxes.leaves)
            weight[sample.boxes.active(cells)] = 1.0
            parts.append(weight)
        return np.concatenate(parts)


def cells_of(trees: TreeProblem, first: int, z: FloatArray) -> IntArray:
    """(J,) the cells of the binaries of a point, which begin at column `first`."""
    counts = trees.cells.counts
    above = z[first : first + trees.cells.cuts] < 0.5
    owner = np.repeat(np.arange(counts.size), counts - 1)
    return np.bincount(owner[above], minlength=counts.size)


def _sides(boxes: LeafBoxes) -> list[tuple[int, bool, IntArray]]:
    """Splits with reachable leaves on both sides: (split, is left, the leaves on that side)."""
    ensemble = boxes.ensemble
    number, node = np.arange(boxes.leaves), boxes.node
    parts: list[tuple[IntArray, IntArray]] = [(np.empty(0, dtype=np.int64),) * 2]
    while number.size:
        inner = ensemble.parent[node] != node
        number, node = number[inner], node[inner]
        up = ensemble.parent[node]
        parts.append((2 * up + (ensemble.left[up] == node), number))
        node = up
    key, leaf = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(key, kind="stable")
    keys, begin = np.unique(key[order], return_index=True)
    groups = zip(keys, np.split(leaf[order], begin[1:]) if keys.size else [], strict=True)
    last = boxes.cells.counts[boxes.place] - 1
    return [
        (int(key // 2), bool(key % 2), leaves)
        for key, leaves in groups
        if 0 <= boxes.cut[key // 2] < last[ensemble.feature[key // 2]]
    ]


def may_have_tree_rows(problem: Problem) -> bool:
    """Whether there are trees beside networks, or chained, which other methods treat as functions."""
    trees = [block.description.trees is not None for block in problem.blocks]
    if not all(trees):
        return any(trees)
    return np.intersect1d(problem.inputs, problem.outputs).size > 0


@dataclass(frozen=True)
class TreeRows:
    """Writes all tree ensembles of a problem as rows, if possible."""

    box: Box
    """A box of every point that the check accepts (see `Structure.loose_rows_box`)."""
    name = "trees beside networks as rows"

    def apply(self, given: Reformulated) -> Reformulated | None:
        """The problem with its trees as rows, and the problem that bounds are proved for; None if it is too
        large."""
        problem, ensembles = given.problem, ensembles_of(given.problem)
        if ensembles is None:
            return None
        loose = problem.derived(problem.mip.minimised().loosened(problem.outputs), problem.blocks)
        box = reached_box(loose, self.box)
        trees = _in_cells(loose, ensembles, box)
        if trees is None:
            return None
        # both are cut within the same box, so that they have the same columns
        relaxed = TreeSplits(trees).apply(Reformulated.start(loose, box))
        points = TreeSplits(trees, margin=True).apply(given)
        return None if points is None else replace(points, relaxed=relaxed, known_box=None)


def _in_cells(problem: Problem, ensembles: dict[str, TreeEnsemble], box: Box) -> TreeProblem | None:
    """The trees of a problem in cells; None if an input is unbounded or there are too many cuts."""
    own = tuple(block for block in problem.blocks if block.name in ensembles)
    alone = problem.derived(problem.mip, own)
    if not np.all(box.finite[alone.inputs]):
        return None
    trees = in_cells(alone, ensembles, box)
    return trees if trees.cells.cuts <= MOST_CUTS else None
