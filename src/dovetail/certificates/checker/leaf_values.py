"""A lower bound of a part's objective on each leaf, computed from the leaf's multipliers.

    objective  >=  objective - sum of multipliers times the slack of constraints    (for any multipliers)
               =   constant + coefficients times variables + coefficients times outputs
               >=  constant + a linear function of the variables                    (planes below the outputs)

The minimum of the linear function is at a corner of the leaf's box. Every rounding error lowers the
bound. `ClassOutputs` links a classifier's classes with its logits:

    class k of several:   logit_k - logit_j >= -slack[k, j]  for every j
    class 1 of one:       logit >= -slack[0],     class 0:  logit <= slack[1]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
import scipy.sparse as sp

from dovetail.certificates.checker.joint_graph import JointGraph, Sample, Substitution, definition, samples_of
from dovetail.certificates.checker.planes import KnownRanges, Planes, Ranges
from dovetail.certificates.checker.region import Boxes, Chosen, Region, down, gamma, up
from dovetail.certificates.checker.root_box import Narrowing
from dovetail.certificates.proof import COST_ROW, Leaves
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.problem import Problem
from dovetail.networks.graph import Graph

ROUNDS = 4
"""Passes over all rows for a leaf, before its networks are evaluated and after."""


@dataclass(frozen=True, eq=False)
class LeafValues:
    """The value of each leaf and its slopes."""

    value: FloatArray
    """(N,) infinity for an empty leaf, minus infinity if no bound is known."""
    slopes: FloatArray
    """(N, variables) slopes of the plane; costs of variables that no network reads."""


class PartValues:
    """One part of a problem, prepared for the checker."""

    def __init__(
        self,
        problem: Problem,
        graphs: dict[str, Graph | None],
        columns: IntArray,
        rows: IntArray,
        *,
        cost: FloatArray,
        noise: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        defined: IntArray,
        row: int = -1,
        most: float = np.inf,
    ) -> None:
        """`cost`, with its rounding, is that of all columns in minimisation form, minus prices. `lower` and
        `upper` bound all columns; `problem` has its rows relaxed as in the check. Only points that cost at
        most `most` are considered."""
        mip = problem.mip
        self.columns, self.rows = columns, rows
        self.integer = mip.integer[columns]
        self._cost, self._noise = cost[columns], noise[columns]
        self._A = mip.A[rows].toarray()[:, columns]
        self._row_lower, self._row_upper = mip.row_lower[rows], mip.row_upper[rows]
        definitions = [definition(mip, int(j), int(i)) for j, i in defined]
        samples, lower, upper = samples_of(problem, graphs, columns, lower, upper)
        self.lower, self.upper = lower[columns], upper[columns]
        self.joint = JointGraph(columns, samples, definitions)
        self._planes = Planes(self.joint.graph, self.joint.ends)
        self._place = {int(j): k for k, j in enumerate(columns)}
        self._columns = Substitution(self.joint, self._place, definitions)
        self._classes = ClassOutputs(self.joint, self._place)
        self._regression = _places(self._place, self.joint.regression)
        self.integer[_places(self._place, self.joint.classes)] = True
        self._cut = (
            self._columns.cost_row(self._cost, self._noise, most, self.root)
            if row == COST_ROW
            else self._columns.region_row(mip, row, self.root)
        )
        self.neurons = sum(size for _, size in self.joint.neurons)
        self._rows = self._narrowing(most)
        self.variables = self._columns.variables
        """The part's columns that are variables."""
        self._reads = self._read()
        self.read = self._reads[: self.variables.size]
        """The places of columns that a network reads."""

    @property
    def root(self) -> Boxes:
        """The box of the whole part."""
        return Boxes(self.lower[None], self.upper[None])

    def _narrowing(self, most: float) -> Narrowing:
        """The part's rows and its cost limit, with room for rounding."""
        with np.errstate(invalid="ignore"):
            room = np.where(self._noise > 0.0, self._noise * self.root.size[0], 0.0).sum()
        room = most + room + gamma(self._noise.size) * (abs(most) + room)
        A = sp.csr_array(np.vstack([self._A, self._cost]))
        lower, upper = np.append(self._row_lower, -np.inf), np.append(self._row_upper, room)
        return Narrowing(A, lower, np.where(np.isnan(upper), np.inf, upper), self.integer)

    # ---- values

    def prepared(self, boxes: Boxes) -> tuple[Boxes, Ranges]:
        """Boxes narrowed by rows and networks, with the ranges of everything in the networks."""
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            boxes = self._narrowed(boxes)
            empty = (boxes.lower > boxes.upper).any(axis=1)
            boxes = replace(boxes, upper=np.maximum(boxes.lower, boxes.upper))
            lower, upper = self._columns.box(boxes)
            ranges = self._planes.ranges(
                self._finite(Region(lower, upper, *self._cut)), self._known_ranges(boxes)
            )
            boxes = self._classes.decided(boxes, ranges)
            low, high = boxes.lower.copy(), boxes.upper.copy()
            for place, columns in self.joint.places.items():
                at = _places(self._place, columns)
                low[:, at] = np.maximum(low[:, at], ranges.lower[place])
                high[:, at] = np.minimum(high[:, at], ranges.upper[place])
            boxes = self._narrowed(Boxes(low, high))
            for place, columns in self.joint.places.items():
                at = _places(self._place, columns)
                ranges.lower[place] = np.maximum(ranges.lower[place], boxes.lower[:, at])
                ranges.upper[place] = np.minimum(ranges.upper[place], boxes.upper[:, at])
            ranges.empty |= empty | (boxes.lower > boxes.upper).any(axis=1)
            return boxes, ranges

    def _narrowed(self, boxes: Boxes) -> Boxes:
        """Boxes narrowed by rows and by the cost limit."""
        n, lower, upper = self.columns.size, boxes.lower.copy(), boxes.upper.copy()
        lower[:, :n], upper[:, :n] = self._rows.narrowed(lower[:, :n], upper[:, :n], ROUNDS)
        return Boxes(lower, upper)

    def values(self, boxes: Boxes, leaves: Leaves) -> LeafValues:
        """Values of some leaves at a time."""
        box, ranges = self.prepared(boxes)
        with np.errstate(invalid="ignore", over="ignore"):
            return self._values(box, ranges, leaves)

    def _values(self, box: Boxes, ranges: Ranges, leaves: Leaves) -> LeafValues:
        rows, constant, off = self._coefficients(leaves)
        coefficients, moved = self._outputs(rows, off, box, leaves, ranges)
        slopes, offset = self._planes.backward(
            len(self.joint.graph.steps), coefficients[:, None], ranges, self._chosen(leaves)
        )
        total = slopes[:, 0] + self._columns.rows(rows)
        variables, noise = Region(*self._columns.box(box)), self._columns.noise(rows, off, slopes[:, 0])
        value = _least(total, noise, variables, self._classes.groups)
        if self._cut[0] is not None and np.all(np.isfinite(variables.size)):
            cut = Region(variables.lower, variables.upper, *self._cut)
            least = cut.least(total[:, None], np.zeros((len(total), 1)))[:, 0]
            value = np.fmax(value, least - (1.0 + gamma(1)) * (noise * variables.size).sum(axis=1))
        terms = np.stack([value, constant, moved, offset[:, 0], self._columns.constant(rows, off)])
        value = terms.sum(axis=0) - gamma(len(terms)) * np.abs(terms).sum(axis=0)
        value = value - self._sizes(off, ranges)
        value = np.where(ranges.empty, np.inf, np.where(np.isnan(value), -np.inf, value))
        n = self.variables.size
        return LeafValues(value, np.where(self.read, slopes[:, 0, :n], total[:, :n]))

    def _known_ranges(self, boxes: Boxes) -> KnownRanges:
        """What is known on the boxes: bounds of outputs, classes, signs."""
        known = KnownRanges()
        for place, columns in self.joint.places.items():
            at = _places(self._place, columns)
            known.lower[place], known.upper[place] = boxes.lower[:, at], boxes.upper[:, at]
        self._classes.know(boxes, known)
        n = self.columns.size
        for place, span in self._spans() if boxes.lower.shape[1] > n else ():
            known.lower[place], known.upper[place] = boxes.lower[:, n:][:, span], boxes.upper[:, n:][:, span]
        return known

    def _chosen(self, leaves: Leaves) -> KnownRanges:
        """The choices of a leaf: lines of ReLUs, and multipliers of neurons' ranges."""
        known = KnownRanges()
        for place, span in self._spans():
            if leaves.slopes.shape[1]:
                known.slopes[place] = leaves.slopes[:, span]
            if leaves.neurons.shape[1]:
                given = leaves.neurons[:, span]
                known.multipliers[place] = np.where(np.isfinite(given), given, 0.0)
        return known

    def _spans(self) -> Iterator[tuple[int, slice]]:
        first = 0
        for place, size in self.joint.neurons:
            yield place, slice(first, first + size)
            first += size

    def _read(self) -> BoolArray:
        read = np.zeros(self.joint.inputs, dtype=bool)
        for step in self.joint.graph.steps:
            if 0 in step.sources:
                weight = step.operation.weights[step.sources.index(0)]  # type: ignore[union-attr]
                read |= np.any(weight != 0.0, axis=0)
        return read

    def _finite(self, region: Region) -> Region:
        """Finite bounds for the networks' inputs; other columns may be unbounded."""
        read = self._reads
        lower = np.where(read | np.isfinite(region.lower), region.lower, np.minimum(region.upper, 0.0))
        lower = np.where(np.isfinite(lower), lower, 0.0)
        upper = np.where(read | np.isfinite(region.upper), region.upper, np.maximum(lower, 0.0))
        return Region(lower, upper, region.row, region.side, region.least_side)

    def _coefficients(self, leaves: Leaves) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(N, columns) coefficients of the remaining objective, (N,) a constant, and the rounding of the
        coefficients."""
        y = leaves.rows
        usable = ~(((y > 0.0) & np.isneginf(self._row_lower)) | ((y < 0.0) & np.isposinf(self._row_upper)))
        y = np.where(usable & np.isfinite(y), y, 0.0)
        side = np.where(y > 0.0, self._row_lower, np.where(y < 0.0, self._row_upper, 0.0))
        parts = y * side
        constant = parts.sum(axis=1) - gamma(parts.shape[1]) * np.abs(parts).sum(axis=1)
        weight = leaves.objective[:, None]
        rows = weight * self._cost - y @ self._A
        off = gamma(y.shape[1]) * (np.abs(weight * self._cost) + np.abs(y) @ np.abs(self._A))
        return rows, constant, off + np.abs(weight) * self._noise

    def _outputs(
        self, rows: FloatArray, off: FloatArray, boxes: Boxes, leaves: Leaves, ranges: Ranges
    ) -> tuple[FloatArray, FloatArray]:
        """(N, outputs of the graph) their coefficients, and (N,) the contribution of their bounds and
        conditions, which may add to `rows` and to their rounding `off`."""
        coefficients = np.zeros((len(rows), self.joint.graph.outputs))
        moved = np.zeros(len(rows))
        coefficients[:, : self._regression.size] = rows[:, self._regression]
        if leaves.conditions.shape[1]:
            given = np.where(np.isfinite(leaves.conditions), leaves.conditions, 0.0)
            self._classes.add_conditions(given, boxes, ranges, rows, off, coefficients, moved)
        if leaves.bounds.shape[1]:
            given = np.where(np.isfinite(leaves.bounds), leaves.bounds, 0.0)
            low, high = (
                np.hstack([side[place] for place in self.joint.ends]) for side in (ranges.lower, ranges.upper)
            )
            parts = np.where(given > 0.0, given * low, np.where(given < 0.0, given * high, 0.0))
            moved += parts.sum(axis=1) - gamma(given.shape[1]) * np.abs(parts).sum(axis=1)
            apart = np.abs(given) + np.abs(coefficients)
            coefficients -= given
            moved -= gamma(1) * (apart * np.maximum(np.abs(low), np.abs(high))).sum(axis=1)
        return coefficients, moved

    def _sizes(self, off: FloatArray, ranges: Ranges) -> FloatArray:
        """(N,) the effect of inexact coefficients of outputs."""
        total = np.zeros(len(off))
        first = 0
        for place, columns in self.joint.places.items():
            at = self._regression[first : first + columns.size]
            total += (off[:, at] * ranges.size(place)).sum(axis=1)
            first += columns.size
        return total * (1.0 + gamma(off.shape[1]))


def _least(slopes: FloatArray, noise: FloatArray, region: Region, groups: list[IntArray]) -> FloatArray:
    """(N,) the least of slopes x over the boxes, slopes known up to noise; bounds may be infinite. In each
    group of class variables one is 1 and the others are 0."""
    parts = np.minimum(
        _product(slopes - noise, region.lower, region.upper),
        _product(slopes + noise, region.lower, region.upper),
    )
    for group in groups:
        possible = (region.upper[:, group] > 0.5) & ~(
            (region.lower[:, group] > 0.5).any(axis=1, keepdims=True) & (region.lower[:, group] < 0.5)
        )
        least = np.where(possible, (slopes - noise)[:, group], np.inf).min(axis=1)
        parts[:, group] = 0.0
        parts[:, group[0]] = least
    return np.asarray(parts.sum(axis=1) - gamma(parts.shape[1]) * np.abs(parts).sum(axis=1))


def _product(factor: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    bound = np.where(factor > 0.0, lower, np.where(factor < 0.0, upper, 0.0))
    return np.where(factor == 0.0, 0.0, factor * np.where(factor == 0.0, 0.0, bound))


def _places(place: dict[int, int], columns: IntArray) -> IntArray:
    return np.array([place[int(j)] for j in columns], dtype=np.int64)


def take(leaves: Leaves, chosen: Chosen) -> Leaves:
    """A selection of the leaves."""
    arrays = {part.name: getattr(leaves, part.name) for part in fields(Leaves)}
    return Leaves(**{name: a if a.shape == (0, 0) else a[chosen] for name, a in arrays.items()})


class ClassOutputs:
    """The class outputs of a part; `place` are the places of columns."""

    def __init__(self, joint: JointGraph, place: dict[int, int]) -> None:
        self._logits = [
            (sample, at, np.array([place[int(j)] for j in sample.outputs])) for sample, at in joint.logits
        ]
        self._first = joint.regression.size
        self.count = int(joint.classes.size)
        index = {int(j): k for k, j in enumerate(joint.variables)}
        self.groups = [
            np.array([index[int(j)] for j in sample.outputs])
            for sample, _ in joint.logits
            if sample.outputs.size > 1
        ]
        """Groups of variables of which one is 1: classes of one sample."""

    def know(self, boxes: Boxes, known: KnownRanges) -> None:
        """Fixed classes of one logit determine the sign of the logit."""
        for sample, place, at in self._logits:
            if at.size == 1:
                one, zero = boxes.lower[:, at] > 0.5, boxes.upper[:, at] < 0.5
                known.lower[place] = np.where(one, -sample.slack[0], -np.inf)
                known.upper[place] = np.where(zero, sample.slack[1], np.inf)

    def decided(self, boxes: Boxes, ranges: Ranges) -> Boxes:
        """Classes that are determined by their logits."""
        lower, upper = boxes.lower.copy(), boxes.upper.copy()
        for sample, place, at in self._logits:
            low, high = ranges.lower[place], ranges.upper[place]
            if at.size == 1:
                lost, won = high < -sample.slack[0], low > sample.slack[1]
                upper[:, at] = np.where(lost, np.minimum(upper[:, at], 0.0), upper[:, at])
                lower[:, at] = np.where(won, np.maximum(lower[:, at], 1.0), lower[:, at])
                continue
            for k in range(at.size):  # beaten by some other class for sure
                beaten = down(low - high[:, [k]]) > sample.slack[k]
                beaten[:, k] = False
                lost = beaten.any(axis=1)
                upper[lost, at[k]] = np.minimum(upper[lost, at[k]], 0.0)
            none = (upper[:, at] < 0.5).all(axis=1)
            lower[none, at[0]] = 1.0  # one of them has to be 1: the leaf is empty
        return replace(boxes, lower=lower, upper=upper)

    def add_conditions(
        self,
        given: FloatArray,
        boxes: Boxes,
        ranges: Ranges,
        rows: FloatArray,
        off: FloatArray,
        coefficients: FloatArray,
        moved: FloatArray,
    ) -> None:
        """Add conditions of logits, times multipliers, to coefficients of columns (`rows`, with rounding
        `off`) and of logits."""
        first, shift = 0, self._first
        for sample, place, at in self._logits:
            one = boxes.lower[:, at] > 0.5
            mine = given[:, first : first + at.size]
            logits = slice(shift + first, shift + first + at.size)
            if at.size == 1:
                # logit >= -slack_0 - far (1 - y)   and   logit <= slack_1 + far y
                zero, won = boxes.upper[:, at] < 0.5, mine > 0.0
                slack = np.where(won, sample.slack[0], sample.slack[1])
                beyond = np.where(won, -ranges.lower[place], ranges.upper[place]) - slack
                far = np.where(won & one | ~won & zero, 0.0, up(np.maximum(beyond, 0.0)))
                use = np.where(np.isfinite(slack) & np.isfinite(far), mine, 0.0)
                slack, far = np.where(use == 0.0, 0.0, slack), np.where(use == 0.0, 0.0, far)
                off[:, at] += gamma(1) * (np.abs(rows[:, at]) + np.abs(use * far))
                rows[:, at] += use * far
                coefficients[:, logits] -= use
                moved -= (np.abs(use) * (slack + np.where(won, far, 0.0)) * (1.0 + gamma(2)))[:, 0]
            else:
                self._fixed_class_conditions(
                    np.maximum(mine, 0.0), one, sample, place, ranges, coefficients[:, logits], moved
                )
            first += at.size

    @staticmethod
    def _fixed_class_conditions(
        given: FloatArray,
        one: BoolArray,
        sample: Sample,
        place: int,
        ranges: Ranges,
        coefficients: FloatArray,
        moved: FloatArray,
    ) -> None:
        """For several classes: the fixed one is not beaten by any other, up to the slack."""
        for k in range(one.shape[1]):
            slack = np.where(np.isfinite(sample.slack[k]), sample.slack[k], 0.0)
            use = np.where(one[:, [k]] & np.isfinite(sample.slack[k]), given, 0.0)
            use[:, k] = 0.0
            coefficients += use
            coefficients[:, k] -= use.sum(axis=1)
            inexact = use.sum(axis=1) * ranges.size(place).max(axis=1) + use @ slack
            moved -= use @ slack + gamma(4 * one.shape[1]) * inexact
