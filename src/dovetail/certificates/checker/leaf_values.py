"""What the objective of a part is never below on each leaf, by the leaf's multipliers.

    objective  >=  objective - sum of multipliers times what rows leave over        (for any multipliers)
               =   constant + coefficients' columns + coefficients' outputs
               >=  constant + a linear function of the variables                    (planes below the outputs)

and that function is least at a corner of the leaf's box. Every rounding is taken to the bound's disadvantage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from dovetail.certificates.checker.boxes import Boxes, Chosen
from dovetail.certificates.checker.class_outputs import ClassOutputs
from dovetail.certificates.checker.joint_graph import JointGraph, samples_of
from dovetail.certificates.checker.planes import Known, Planes, Ranges
from dovetail.certificates.checker.region import Region
from dovetail.certificates.checker.rounding import gamma
from dovetail.certificates.checker.substitution import Substitution, definition
from dovetail.certificates.proof import COST_ROW, Leaves
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.problem import Problem
from dovetail.networks.graph import Graph


@dataclass(frozen=True, eq=False)
class Prepared:
    """Boxes, and the ranges of everything in the networks on them."""

    given: Boxes
    boxes: Boxes
    """With classes that the networks have decided."""
    ranges: Ranges

    def take(self, chosen: Chosen) -> Prepared:
        """Some of them."""
        return Prepared(self.given.take(chosen), self.boxes.take(chosen), self.ranges.take(chosen))


@dataclass(frozen=True, eq=False)
class Values:
    """Of each leaf: the value, and what it hangs on."""

    value: FloatArray
    """(N,) infinity where nothing is there, minus infinity where nothing is known."""
    slopes: FloatArray
    """(N, variables) of the plane; of variables that no network reads, of what they cost."""
    apart: FloatArray
    """(N, variables) how fast the planes below and above the outputs part."""
    gap: FloatArray
    """(N,) how far those planes, and bounds of outputs, are apart: what halving a box can gain."""
    reduced: FloatArray
    """(N, variables) of the linear function whose least is the value."""


@dataclass(frozen=True, eq=False)
class PlaneRows:
    """Planes of single outputs on N boxes, for those who look for multipliers."""

    cost: FloatArray
    A: FloatArray
    row_lower: FloatArray
    row_upper: FloatArray
    lower: FloatArray
    """(N, columns); outputs as far as the networks can go on the box."""
    upper: FloatArray
    variables: IntArray
    """Places of the columns that slopes are of; unknowns follow."""
    unknowns: FloatArray
    regression: IntArray
    classes: int
    below: FloatArray
    """(N, outputs, variables and unknowns)."""
    below_offset: FloatArray
    above: FloatArray
    above_offset: FloatArray
    logits: tuple[FloatArray, FloatArray]
    """(N, classes) what each must be at least and at most, infinite where that is open."""


class PartValues:
    """One part of a problem, made ready."""

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
        """`cost` (and what it may be off by) is that of all columns in minimisation form, prices taken off.

        `lower` and `upper` bound all columns; `problem` has its rows as loose as the check. Where `row` is
        `COST_ROW` only points that cost no more than `most` are looked at.
        """
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
        self._planes = Planes(self.joint.graph)
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
        self.variables = self._columns.variables
        """Of the part's columns, those that are variables."""
        self._reads = self._read()
        self.read = self._reads[: self.variables.size]
        """Of those, the ones that a network reads."""

    @property
    def root(self) -> Boxes:
        """All there is."""
        return Boxes(self.lower[None], self.upper[None], np.zeros((1, 0)))

    # ---- values

    def prepared(self, boxes: Boxes) -> Prepared:
        """The ranges on some boxes."""
        with np.errstate(invalid="ignore", over="ignore"):
            lower, upper = self._columns.box(boxes)
            region = Region(lower, upper, *self._cut)
            ranges = self._planes.ranges(self._finite(region), self._known(boxes))
            return Prepared(boxes, self._classes.decided(boxes, ranges), ranges)

    def values(self, boxes: Boxes, leaves: Leaves) -> Values:
        """Of some leaves at a time."""
        return self.values_of(self.prepared(boxes), leaves)

    def values_of(self, prepared: Prepared, leaves: Leaves, *, both: bool = False) -> Values:
        """The same; `both` asks how planes part as well."""
        with np.errstate(invalid="ignore", over="ignore"):
            return self._values(prepared, leaves, both)

    def _values(self, prepared: Prepared, leaves: Leaves, both: bool) -> Values:
        box, ranges = prepared.boxes, prepared.ranges
        known = self._chosen(prepared.given, leaves)
        empty = ranges.empty | (box.lower > box.upper).any(axis=1)
        rows, constant, off = self._coefficients(leaves)
        coefficients, moved = self._outputs(rows, box, leaves, ranges)
        sides = np.stack([coefficients, -coefficients], axis=1) if both else coefficients[:, None]
        slopes, offset = self._planes.backward(len(self.joint.graph.steps), sides, ranges, known)
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
        value = np.where(empty, np.inf, np.where(np.isnan(value), -np.inf, value))
        n = self.variables.size
        apart, gap = np.zeros((len(value), n)), np.full(len(value), np.inf)
        if both:
            apart = slopes.sum(axis=1)[:, :n]
            region = self._finite(variables)
            gap = -region.least(slopes.sum(axis=1, keepdims=True), offset.sum(axis=1, keepdims=True))[:, 0]
            gap = gap + self._spread(leaves, ranges)
        steep = np.where(self.read, slopes[:, 0, :n], total[:, :n])
        return Values(value, steep, apart, gap, total[:, :n])

    def _spread(self, leaves: Leaves, ranges: Ranges) -> FloatArray:
        """(N,) what the ranges of outputs, times their multipliers, leave open."""
        if not leaves.bounds.shape[1]:
            return np.zeros(len(leaves))
        width = np.hstack([ranges.upper[place] - ranges.lower[place] for place in self.joint.places])
        return np.asarray((np.abs(leaves.bounds) * width).sum(axis=1))

    def plane_rows(self, prepared: Prepared) -> PlaneRows:
        """Planes below and above every output on each box."""
        box, ranges = prepared.boxes, prepared.ranges
        n, total = len(box.lower), self.joint.graph.outputs
        both = np.broadcast_to(np.concatenate([np.eye(total), -np.eye(total)]), (n, 2 * total, total))
        with np.errstate(invalid="ignore", over="ignore"):
            slopes, offset = self._planes.backward(len(self.joint.graph.steps), both, ranges, Known())
        lower, upper = box.lower.copy(), np.maximum(box.upper, box.lower)
        first = 0
        for place, columns in self.joint.places.items():
            at = self._regression[first : first + columns.size]
            lower[:, at], upper[:, at] = ranges.lower[place], ranges.upper[place]
            first += columns.size
        return PlaneRows(
            self._cost, self._A, self._row_lower, self._row_upper, lower, upper, self.variables,
            self.joint.unknowns, self._regression, self._classes.count, slopes[:, :total], offset[:, :total],
            -slopes[:, total:], -offset[:, total:], self._classes.sides(box),
        )  # fmt: skip

    @property
    def split_worthy(self) -> BoolArray:
        """(variables,) those that a network reads, or that are integers."""
        return np.asarray(self.read | self.integer[self.variables])

    def _known(self, boxes: Boxes) -> Known:
        """What is known on the boxes: outputs within their columns' bounds, classes, signs."""
        known = Known()
        for place, columns in self.joint.places.items():
            at = _places(self._place, columns)
            known.lower[place], known.upper[place] = boxes.lower[:, at], boxes.upper[:, at]
        self._classes.know(boxes, known)
        for place, span in self._spans() if boxes.signs.shape[1] else ():
            sign = boxes.signs[:, span]
            known.lower[place] = np.where(sign > 0.0, 0.0, -np.inf)
            known.upper[place] = np.where(sign < 0.0, 0.0, np.inf)
        return known

    def _chosen(self, boxes: Boxes, leaves: Leaves) -> Known:
        """What a leaf chooses: lines of ReLUs, and multipliers of signs that its box has decided."""
        known = Known()
        for place, span in self._spans():
            if leaves.slopes.shape[1]:
                known.slopes[place] = leaves.slopes[:, span]
            if leaves.signs.shape[1] and boxes.signs.shape[1]:
                known.multipliers[place] = boxes.signs[:, span] * np.maximum(leaves.signs[:, span], 0.0)
        return known

    def _spans(self) -> Iterator[tuple[int, slice]]:
        """Places that ReLUs read, and which neurons they are."""
        first = 0
        for place, size in self.joint.neurons:
            yield place, slice(first, first + size)
            first += size

    def _read(self) -> BoolArray:
        """Variables and unknowns that a network reads."""
        read = np.zeros(self.joint.inputs, dtype=bool)
        for step in self.joint.graph.steps:
            if 0 in step.sources:
                weight = step.operation.weights[step.sources.index(0)]  # type: ignore[union-attr]
                read |= np.any(weight != 0.0, axis=0)
        return read

    def _finite(self, region: Region) -> Region:
        """For the networks: columns that none of them reads may have no bounds."""
        read = self._reads
        lower = np.where(read | np.isfinite(region.lower), region.lower, np.minimum(region.upper, 0.0))
        lower = np.where(np.isfinite(lower), lower, 0.0)
        upper = np.where(read | np.isfinite(region.upper), region.upper, np.maximum(lower, 0.0))
        return Region(lower, upper, region.row, region.side, region.least_side)

    def _coefficients(self, leaves: Leaves) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(N, columns) what is left of the objective, (N,) a constant, and what the first may be off by."""
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
        self, rows: FloatArray, boxes: Boxes, leaves: Leaves, ranges: Ranges
    ) -> tuple[FloatArray, FloatArray]:
        """(N, outputs of the graph) their coefficients, and (N,) what their bounds and conditions give."""
        coefficients = np.zeros((len(rows), self.joint.graph.outputs))
        moved = np.zeros(len(rows))
        q = self._regression.size
        coefficients[:, :q] = rows[:, self._regression]
        if leaves.bounds.shape[1]:
            given = np.where(np.isfinite(leaves.bounds), leaves.bounds, 0.0)
            low, high = (
                np.hstack([side[place] for place in self.joint.places])
                for side in (ranges.lower, ranges.upper)
            )
            parts = np.where(given > 0.0, given * low, given * high)
            moved += parts.sum(axis=1) - gamma(q) * np.abs(parts).sum(axis=1)
            coefficients[:, :q] -= given
            apart = np.abs(given) + np.abs(rows[:, self._regression])
            moved -= gamma(1) * (apart * np.maximum(np.abs(low), np.abs(high))).sum(axis=1)
        if leaves.conditions.shape[1]:
            self._classes.add_conditions(
                np.maximum(leaves.conditions, 0.0), boxes, ranges, coefficients, moved
            )
        return coefficients, moved

    def _sizes(self, off: FloatArray, ranges: Ranges) -> FloatArray:
        """(N,) what inexact coefficients of outputs may make of it."""
        total = np.zeros(len(off))
        first = 0
        for place, columns in self.joint.places.items():
            at = self._regression[first : first + columns.size]
            total += (off[:, at] * ranges.size(place)).sum(axis=1)
            first += columns.size
        return total * (1.0 + gamma(off.shape[1]))


def _least(slopes: FloatArray, noise: FloatArray, region: Region, groups: list[IntArray]) -> FloatArray:
    """(N,) the least of slopes x over the boxes, slopes known up to noise; bounds may be infinite.

    Of the variables of a group, which are classes, one is 1 and the others are 0.
    """
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
    """Some of the leaves."""
    return Leaves(**{f.name: _taken(getattr(leaves, f.name), chosen) for f in fields(Leaves)})


def _taken(array: FloatArray, chosen: Chosen) -> FloatArray:
    return array if array.shape == (0, 0) else array[chosen]
