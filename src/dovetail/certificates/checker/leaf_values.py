"""What the objective of a part is never below on each leaf, by the leaf's multipliers.

    objective  >=  objective - sum of multipliers times what rows leave over        (for any multipliers)
               =   constant + coefficients' columns + coefficients' outputs
               >=  constant + a linear function of the variables                    (planes below the outputs)

and that function is least at a corner of the leaf's box. Every rounding is taken to the bound's disadvantage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np

from dovetail.certificates.certificate import Leaves
from dovetail.certificates.checker.joint_graph import Definition, JointGraph, Sample, samples_of
from dovetail.certificates.checker.planes import Chosen, Known, Planes, Ranges
from dovetail.certificates.checker.region import Region
from dovetail.certificates.checker.rounding import gamma
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.graph import Graph
from dovetail.core.mip import Mip
from dovetail.core.problem import Problem


@dataclass(frozen=True, eq=False)
class Boxes:
    """Where the leaves are: bounds of the part's columns, and signs of its neurons."""

    lower: FloatArray
    """(N, columns)."""
    upper: FloatArray
    signs: FloatArray
    """(N, neurons): 1 and -1 where a sign is decided, else 0; no columns where none is."""

    def take(self, chosen: Chosen) -> Boxes:
        """Some of them."""
        return Boxes(self.lower[chosen], self.upper[chosen], self.signs[chosen])


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
    ) -> None:
        """`cost` (and what it may be off by) is that of all columns in minimisation form, prices taken off.

        `lower` and `upper` bound all columns; `problem` has its rows as loose as the check.
        """
        mip = problem.mip
        self.columns, self.rows = columns, rows
        self.integer = mip.integer[columns]
        self.lower, self.upper = lower[columns], upper[columns]
        self._cost, self._noise = cost[columns], noise[columns]
        self._A = mip.A[rows].toarray()[:, columns]
        self._row_lower, self._row_upper = mip.row_lower[rows], mip.row_upper[rows]
        definitions = [definition(mip, int(j), int(i)) for j, i in defined]
        samples = samples_of(problem, graphs, columns, lower, upper)
        self.joint = JointGraph(columns, samples, definitions)
        self._planes = Planes(self.joint.graph)
        self._definitions = definitions
        place = {int(j): k for k, j in enumerate(columns)}
        self._variables = _places(place, self.joint.variables)
        self._regression = _places(place, self.joint.regression)
        self._classes = _places(place, self.joint.classes)
        self._place = place
        index = {int(j): k for k, j in enumerate(self.joint.variables)}
        self._groups = [
            _places(index, sample.outputs) for sample, _ in self.joint.logits if sample.outputs.size > 1
        ]
        self._cut = self._row_of_region(mip, row)
        self.neurons = sum(size for _, size in self.joint.neurons)
        self.variables = self._variables
        """Of the part's columns, those that are variables."""
        self.read = self._read()[: self._variables.size]
        """Of those, the ones that a network reads."""

    def _row_of_region(self, mip: Mip, row: int) -> tuple[FloatArray | None, float]:
        """The row that neurons' bounds take account of, over variables and unknowns: row x <= side."""
        if row < 0:
            return None, 0.0
        entries = mip.A[[row]].tocoo()
        weights, side = np.zeros(self.joint.inputs), float(mip.row_upper[row])
        sizes, total = np.zeros(self.joint.inputs), abs(side)
        for j, a in zip(entries.coords[1].tolist(), entries.data.tolist(), strict=True):
            if j not in self._place or j in self.joint.regression.tolist():
                raise UnsupportedError("the row of a part has other columns in it")
            one = np.zeros(self.joint.inputs)
            constant = self.joint.place_in(j, one)
            weights, side = weights + a * one, side - a * constant
            sizes, total = sizes + np.abs(a * one), total + abs(a * constant)
        box = Boxes(self.lower[None], self.upper[None], np.zeros((1, 0)))
        reach = Region(*self._variable_box(box)).size[0]
        if not np.isfinite(side) or not np.all(np.isfinite(reach[sizes > 0.0])):
            return None, 0.0
        total += float(sizes[sizes > 0.0] @ reach[sizes > 0.0])
        return weights, side + gamma(2 * entries.data.size) * total

    # ---- values

    def prepared(self, boxes: Boxes) -> Prepared:
        """The ranges on some boxes."""
        with np.errstate(invalid="ignore", over="ignore"):
            region = Region(*self._variable_box(boxes), *self._cut)
            ranges = self._planes.ranges(self._finite(region), self._known(boxes))
            return Prepared(boxes, self._decided(boxes, ranges), ranges)

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
        total = slopes[:, 0] + self._embedded(rows)
        variables = Region(*self._variable_box(box))
        value = _least(total, self._embedded_noise(rows, off, slopes[:, 0]), variables, self._groups)
        terms = np.stack([value, constant, moved, offset[:, 0], self._defined_constants(rows)])
        value = terms.sum(axis=0) - gamma(len(terms)) * np.abs(terms).sum(axis=0)
        value = value - self._sizes(off, ranges)
        value = np.where(empty, np.inf, np.where(np.isnan(value), -np.inf, value))
        n = self._variables.size
        apart = slopes.sum(axis=1)[:, :n] if both else np.zeros((len(value), n))
        return Values(value, np.where(self.read, slopes[:, 0, :n], total[:, :n]), apart)

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
            self._cost, self._A, self._row_lower, self._row_upper, lower, upper, self._variables,
            self.joint.unknowns, self._regression, self._classes.size, slopes[:, :total], offset[:, :total],
            -slopes[:, total:], -offset[:, total:], self._open_conditions(box),
        )  # fmt: skip

    def _open_conditions(self, boxes: Boxes) -> tuple[FloatArray, FloatArray]:
        """(N, classes) what each logit must be at least, and at most, where its class is fixed.

        Of a class of one logit only; those of several keep multipliers of 0.
        """
        least = np.full((len(boxes.lower), self._classes.size), -np.inf)
        most = np.full((len(boxes.lower), self._classes.size), np.inf)
        first = 0
        for sample, _ in self.joint.logits:
            at = _places(self._place, sample.outputs)
            if at.size == 1:
                least[:, first] = np.where(boxes.lower[:, at[0]] > 0.5, -sample.slack[0], -np.inf)
                most[:, first] = np.where(boxes.upper[:, at[0]] < 0.5, sample.slack[1], np.inf)
            first += at.size
        return least, most

    @property
    def split_worthy(self) -> BoolArray:
        """(variables,) those that a network reads, or that are integers."""
        return np.asarray(self.read | self.integer[self._variables])

    def _known(self, boxes: Boxes) -> Known:
        """What is known on the boxes: outputs within their columns' bounds, classes, signs."""
        known = Known()
        for place, columns in self.joint.places.items():
            at = _places(self._place, columns)
            known.lower[place], known.upper[place] = boxes.lower[:, at], boxes.upper[:, at]
        for sample, place in self.joint.logits:
            self._class_ranges(sample.outputs, sample.slack, place, boxes, known)
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

    def _class_ranges(
        self, columns: IntArray, slack: FloatArray, place: int, boxes: Boxes, known: Known
    ) -> None:
        """A class of one logit that is fixed says on which side of 0 it is."""
        if columns.size > 1:
            return
        at = self._place[int(columns[0])]
        one, zero = boxes.lower[:, at] > 0.5, boxes.upper[:, at] < 0.5
        known.lower[place] = np.where(one, -slack[0], -np.inf)[:, None]
        known.upper[place] = np.where(zero, slack[1], np.inf)[:, None]

    def _decided(self, boxes: Boxes, ranges: Ranges) -> Boxes:
        """Classes whose logit says which they are."""
        lower, upper = boxes.lower.copy(), boxes.upper.copy()
        for sample, place in self.joint.logits:
            at = _places(self._place, sample.outputs)
            if at.size == 1:
                upper[:, at] = np.where(
                    ranges.upper[place] < -sample.slack[0], np.minimum(upper[:, at], 0.0), upper[:, at]
                )
                lower[:, at] = np.where(
                    ranges.lower[place] > sample.slack[1], np.maximum(lower[:, at], 1.0), lower[:, at]
                )
                continue
            for k in range(at.size):  # beaten by some other class for sure
                beaten = ranges.lower[place] - ranges.upper[place][:, [k]] > sample.slack[k]
                beaten[:, k] = False
                lost = beaten.any(axis=1)
                upper[lost, at[k]] = np.minimum(upper[lost, at[k]], 0.0)
        return replace(boxes, lower=lower, upper=upper)

    def _variable_box(self, boxes: Boxes) -> tuple[FloatArray, FloatArray]:
        unknown = np.broadcast_to(self.joint.unknowns, (len(boxes.lower), self.joint.unknowns.size))
        at = self._variables
        return np.hstack([boxes.lower[:, at], -unknown]), np.hstack([boxes.upper[:, at], unknown])

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
        read = self._read()
        lower = np.where(read | np.isfinite(region.lower), region.lower, np.minimum(region.upper, 0.0))
        lower = np.where(np.isfinite(lower), lower, 0.0)
        upper = np.where(read | np.isfinite(region.upper), region.upper, np.maximum(lower, 0.0))
        return Region(lower, upper, region.row, region.side)

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
            low = np.hstack(
                [ranges.lower[place] for place in self.joint.places] or [np.zeros((len(rows), 0))]
            )
            high = np.hstack(
                [ranges.upper[place] for place in self.joint.places] or [np.zeros((len(rows), 0))]
            )
            parts = np.where(given > 0.0, given * low, given * high)
            moved += parts.sum(axis=1) - gamma(q) * np.abs(parts).sum(axis=1)
            coefficients[:, :q] -= given
            apart = np.abs(given) + np.abs(rows[:, self._regression])
            moved -= gamma(1) * (apart * np.maximum(np.abs(low), np.abs(high))).sum(axis=1)
        if leaves.conditions.shape[1]:
            self._conditions(np.maximum(leaves.conditions, 0.0), boxes, ranges, coefficients, moved)
        return coefficients, moved

    def _conditions(
        self, given: FloatArray, boxes: Boxes, ranges: Ranges, coefficients: FloatArray, moved: FloatArray
    ) -> None:
        """What logits must be where classes are fixed, times a number that is not negative."""
        first, shift = 0, self._regression.size
        for sample, place in self.joint.logits:
            at = _places(self._place, sample.outputs)
            one = boxes.lower[:, at] > 0.5
            mine = given[:, first : first + at.size]
            logits = slice(shift + first, shift + first + at.size)
            if at.size == 1:
                zero = boxes.upper[:, at] < 0.5
                slack = np.where(one, sample.slack[0], sample.slack[1])
                use = np.where((one | zero) & np.isfinite(slack), mine, 0.0)
                coefficients[:, logits] += np.where(one, -use, use)
                moved -= (use * np.where(np.isfinite(slack), slack, 0.0) * (1.0 + gamma(1)))[:, 0]
            else:
                self._winners(mine, one, sample, place, ranges, coefficients[:, logits], moved)
            first += at.size

    @staticmethod
    def _winners(
        given: FloatArray,
        one: BoolArray,
        sample: Sample,
        place: int,
        ranges: Ranges,
        coefficients: FloatArray,
        moved: FloatArray,
    ) -> None:
        """Of several classes the one that is fixed is not beaten by any other, but for the slack."""
        for k in range(one.shape[1]):
            slack = np.where(np.isfinite(sample.slack[k]), sample.slack[k], 0.0)
            use = np.where(one[:, [k]] & np.isfinite(sample.slack[k]), given, 0.0)
            use[:, k] = 0.0
            coefficients += use
            coefficients[:, k] -= use.sum(axis=1)
            inexact = use.sum(axis=1) * ranges.size(place).max(axis=1) + use @ slack
            moved -= use @ slack + gamma(4 * one.shape[1]) * inexact

    # ---- columns as variables

    def _embedded(self, rows: FloatArray) -> FloatArray:
        """The coefficients of columns over variables and unknowns; definitions are put in."""
        total = np.zeros((len(rows), self.joint.inputs))
        total[:, : self._variables.size] = rows[:, self._variables]
        for one in self._definitions:
            weights = np.zeros(self.joint.inputs)
            self.joint.place_in(one.column, weights)
            total += rows[:, [self._place[one.column]]] * weights
        return total

    def _embedded_noise(self, rows: FloatArray, off: FloatArray, slopes: FloatArray) -> FloatArray:
        """What those, and the planes' slopes that are added, may be off by."""
        return self._absolute(off) + gamma(2 + len(self._definitions)) * (
            self._absolute(np.abs(rows)) + np.abs(slopes)
        )

    def _absolute(self, sizes: FloatArray) -> FloatArray:
        total = np.zeros((len(sizes), self.joint.inputs))
        total[:, : self._variables.size] = sizes[:, self._variables]
        for one in self._definitions:
            weights = np.zeros(self.joint.inputs)
            self.joint.place_in(one.column, weights)
            total += sizes[:, [self._place[one.column]]] * np.abs(weights)
        return total

    def _defined_constants(self, rows: FloatArray) -> FloatArray:
        total = np.zeros(len(rows))
        for one in self._definitions:
            part = rows[:, self._place[one.column]] * one.constant
            total += part - gamma(1) * np.abs(part)
        return total - gamma(len(self._definitions)) * np.abs(total)

    def _sizes(self, off: FloatArray, ranges: Ranges) -> FloatArray:
        """(N,) what inexact coefficients of outputs may make of it, and constants of definitions."""
        total = np.zeros(len(off))
        first = 0
        for place, columns in self.joint.places.items():
            at = self._regression[first : first + columns.size]
            total += (off[:, at] * ranges.size(place)).sum(axis=1)
            first += columns.size
        for one in self._definitions:
            total += off[:, self._place[one.column]] * abs(one.constant)
        return total * (1.0 + gamma(off.shape[1]))


def definition(mip: Mip, column: int, row: int) -> Definition:
    """A column as an equality row has it; the row is as loose as the check already."""
    start, stop = mip.A.indptr[row], mip.A.indptr[row + 1]
    entries = dict(zip(mip.A.indices[start:stop].tolist(), mip.A.data[start:stop].tolist(), strict=True))
    own = entries.pop(column, 0.0)
    if abs(own) != 1.0 or not np.isfinite(mip.row_upper[row] - mip.row_lower[row]):
        raise UnsupportedError(f"{mip.row_name(row)} does not say what {mip.column_name(column)} is")
    middle = 0.5 * (mip.row_lower[row] + mip.row_upper[row])
    missed = 0.5 * (mip.row_upper[row] - mip.row_lower[row]) + gamma(4) * (1.0 + abs(middle))
    return Definition(column, {j: -a * own for j, a in entries.items()}, float(middle * own), float(missed))


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
