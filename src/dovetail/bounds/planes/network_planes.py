"""Linear planes below the outputs of a network over sets of inputs, by backward substitution (CROWN).

    ranges    bounds of every vector: by intervals, then by planes for the inputs of nonlinear steps
    planes    outputs >= slopes x + offset: from the outputs backwards, an affine step is passed by its
              adjoint, a nonlinear step by the line below it (above, for a negative weight)

Many sets of inputs are bounded together, on any device. Rounding errors are deducted at each step: at
most |A| slip, where A are the incoming weights. For an affine step, slip is gamma (|W| |v| + |b|), with v
within its range; gamma counts the longest sum, and one addition for every step of the graph. The weights
A take nearly all of the work and may be float32: gamma is then that of float32, and everything else stays
float64.

A deployed network rounds as well, which adds one more slip (`networks/step_rounding.py`). Ranges then
hold for the numbers that the deployed network computes, and planes for its outputs.

All sets of a batch get planes for the same number of values. Of thousands of sets, some need planes for
all values of a vector and most for a third (cells of 6x64). So sets that need about the same number of
values form a group: a single batch would take three times as long.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from dovetail.bounds.box import UNIT
from dovetail.bounds.planes.domain import Domain, dots, gamma
from dovetail.bounds.planes.kernels import EVERY, Carrying, LoadedAffine, through_lines
from dovetail.bounds.planes.relaxation import Relaxation, multiplied, product_range, rule_of
from dovetail.core.deadline import require_time
from dovetail.core.errors import UnsupportedError
from dovetail.networks.graph import Affine, Elementwise, Enclosed, Enclosing, Graph, Product
from dovetail.networks.step_rounding import StepRounding

NUMBERS, DEVICE_NUMBERS = 2**19, 2**26
"""Numbers of a group in one tensor: small enough for a core's cache, large enough for a GPU."""


@dataclass(frozen=True, eq=False)
class SetBatches:
    """A selection of sets, with the same number of values for each."""

    sets: Tensor | slice
    values: Tensor
    """(n, most) by number."""
    wanted: Tensor
    """(n, most) whether each is wanted; others are filler."""


def groups(wanted: Tensor, width: int) -> Iterator[SetBatches]:
    """Groups of (N, size) wanted values, if a plane has `width` numbers, without sets that want none. A set
    that wants more values than a group holds appears in several groups."""
    count = wanted.sum(1)
    order = count.argsort(descending=True)
    counts = count[order].cpu().numpy()
    numbers = NUMBERS if wanted.device.type == "cpu" else DEVICE_NUMBERS
    first, end = 0, int(np.count_nonzero(counts))
    while first < end:
        most = int(counts[first])
        last = min(end, first + max(1, numbers // (2 * most * width)))
        sets = slice(None) if last - first == len(order) else order[first:last]
        values, is_wanted = _filled_up(wanted[sets], most)
        held = max(1, numbers // (2 * width))
        for some in range(0, most, held):
            yield SetBatches(sets, values[:, some : some + held], is_wanted[:, some : some + held])
        first = last


def _filled_up(wanted: Tensor, most: int) -> tuple[Tensor, Tensor]:
    if most == wanted.shape[1]:
        return torch.arange(most, device=wanted.device).expand(len(wanted), -1), wanted
    values = torch.argsort(wanted.to(torch.int8), dim=1, descending=True)[:, :most]
    return values, wanted.gather(1, values)


MORE = 8
"""Number of operations in addition to a sum: the split into signs, a slope, the offset."""

LARGEST = 2.0**60
"""Largest size of float32 values for which bounds are claimed."""

KEPT = 31 * 2**17
"""Numbers (31 MB) that are allocated once and freed untouched, which makes the C library keep memory of this
size. Without it, tensors of some megabytes are made of new pages, which takes a third of the time."""


@dataclass(eq=False)
class Ranges:
    """Bounds of every vector of a graph over N sets of inputs: (N, size) each, inputs first. A tensor may be
    replaced but never changed, because derived results are cached."""

    lower: list[Tensor]
    upper: list[Tensor]
    _kept: dict[tuple[str, int], tuple[tuple[Tensor, ...], object]] = field(default_factory=dict, repr=False)
    """Results derived from some of these tensors, valid while the tensors are in place."""

    def size(self, place: int) -> Tensor:
        """(N, size) the largest absolute value."""
        seen, kept = (self.lower[place], self.upper[place]), self._kept.get(("size", place))
        if kept is None or not _is_same_tensor(kept[0], seen):
            kept = (seen, torch.maximum(seen[0].abs(), seen[1].abs()))
            self._kept["size", place] = kept
        assert isinstance(kept[1], Tensor)
        return kept[1]

    def take(self, chosen: Tensor) -> Ranges:
        """The ranges of a selection of the sets, by index."""
        return Ranges([low[chosen] for low in self.lower], [high[chosen] for high in self.upper])


@dataclass(frozen=True, eq=False)
class Planes:
    """rows f(x) >= slopes x + offset on each of N sets of inputs."""

    slopes: Tensor
    """(N, S, d)."""
    offset: Tensor
    """(N, S), with rounding subtracted; NaN if no bound is known."""


@dataclass(frozen=True, eq=False)
class Choices:
    """Free parameters that leave every plane valid, for optimisation. By place of the vector that a ReLU
    reads."""

    slopes: Mapping[int, Tensor] = field(default_factory=dict)
    """(N, 1 or S, size) lower slopes of ReLUs that may change sign, between 0 and 1."""
    multipliers: Mapping[int, Tensor] = field(default_factory=dict)
    """(N, 1 or S, size) weights of any vector that are subtracted: the plane is below rows f(x) -
    multipliers v. If a sign is known so that multipliers v >= 0, the plane is below rows f(x) too."""
    held: Mapping[int, Tensor] = field(default_factory=dict)
    """(N, 1 or S, size) weights of any vector that are bounded by its range: held v is at least its least
    value, and only the other weights are passed back. The multipliers of bounds of neurons."""


NO_CHOICES = Choices()


class NetworkPlanes:
    """One graph, prepared once."""

    def __init__(
        self,
        graph: Graph,
        device: str = "cpu",
        deployed: StepRounding | None = None,
        kind: torch.dtype = torch.float64,
    ) -> None:
        """`deployed`: the rounding of the network in its own arithmetic; `kind`: the precision of backward
        passes."""
        self.graph, self._device, self.deployed, self._kind = graph, device, deployed, kind
        torch.empty(KEPT, dtype=torch.float64)
        unit = torch.finfo(kind).eps / 2.0
        self._gamma = gamma(max(graph.sizes) + len(graph.steps) + MORE, unit)
        self._affine: dict[int, LoadedAffine] = {}
        for place, step in enumerate(graph.steps, start=1):
            if isinstance(step.operation, Affine):
                self._affine[place] = self._loaded(step.operation, place)
            elif isinstance(step.operation, Elementwise):
                rule_of(step.operation.kind)
            elif not isinstance(step.operation, (Product, Enclosed)):
                raise UnsupportedError(f"there are no planes for {step.operation}")
        self._largest = math.inf if deployed is None else 0.5 * deployed.largest
        if kind is not torch.float64:
            self._largest = min(self._largest, LARGEST)
        self._bent: dict[int, Tensor] = {}
        if deployed is not None:
            others = set(range(1, len(graph.steps) + 1)) - set(self._affine)
            self._bent = {k: self._tensor(deployed.more[k]) for k in others if deployed.more[k].any()}
        self._readers = [self._reader_kinds(place) for place in range(len(graph.steps) + 1)]
        self._in_lines = {place for place in self._affine if self._has_one_reader(place)}
        """Affine steps read by one nonlinear step only: their constants and rounding are part of the offsets
        of its lines."""

    def _loaded(self, operation: Affine, place: int) -> LoadedAffine:
        weights = tuple(self._tensor(weight) for weight in operation.weights)
        bias = self._tensor(operation.bias)
        own, more = torch.full_like(bias, self._gamma), torch.zeros_like(bias)
        if self.deployed is not None:
            own, more = own + self._tensor(self.deployed.rate[place]), self._tensor(self.deployed.more[place])
        return LoadedAffine(
            weights,
            tuple(weight.to(self._kind) for weight in weights),
            tuple(w.abs().T.contiguous() for w in weights),
            bias,
            own,
            more,
        )

    def _tensor(self, array: object) -> Tensor:
        return torch.as_tensor(array, dtype=torch.float64, device=self._device)

    def _reader_kinds(self, place: int) -> frozenset[str]:
        """The kinds of nonlinear steps that read a vector."""
        readers = [step.operation for step in self.graph.steps if place in step.sources]
        kinds = {one.kind if isinstance(one, Elementwise) else type(one).__name__ for one in readers}
        return frozenset(kinds - {Affine.__name__})

    def _has_one_reader(self, place: int) -> bool:
        """Whether exactly one step reads it, a nonlinear one."""
        readers = self._readers[place] - {Enclosed.__name__}
        return sum(place in step.sources for step in self.graph.steps) == 1 and bool(readers)

    def of_kind(self, kind: torch.dtype) -> NetworkPlanes:
        """The same network with another precision of backward passes."""
        return NetworkPlanes(self.graph, self._device, self.deployed, kind)

    @property
    def rounds(self) -> bool:
        """Whether the deployed network computes in lower precision than float64."""
        return self.deployed is not None and float(self.deployed.rate[0].max(initial=0.0)) > UNIT

    def up_to(self, place: int) -> NetworkPlanes:
        """The same network ending in the vector at `place`."""
        graph = Graph(self.graph.inputs, self.graph.steps[:place])
        return NetworkPlanes(graph, self._device, self.deployed, self._kind)

    # ---- ranges

    def ranges(self, domain: Domain, known: Ranges | None = None, settled: int = 0) -> Ranges:
        """Ranges of every vector, at least as tight as `known`, which holds on the same sets. Up to the
        place `settled` the known ranges are as tight as planes make them."""
        ranges = Ranges([domain.lower], [domain.upper])
        for place, step in enumerate(self.graph.steps, start=1):
            low, high = self._interval(place, ranges)
            if known is not None:
                low, high = torch.maximum(low, known.lower[place]), torch.minimum(high, known.upper[place])
            ranges.lower.append(low)
            ranges.upper.append(high)
            if place > settled and self._readers[place] and not isinstance(step.operation, Elementwise):
                self._tighten(place, domain, ranges)
        return ranges

    def output_ranges(self, domain: Domain) -> Ranges:
        """The same, with planes for the outputs too; `ranges` has planes only for vectors that nonlinear
        steps read."""
        ranges = self.ranges(domain)
        one = torch.eye(self.graph.outputs, dtype=torch.float64, device=ranges.lower[-1].device)
        below = self.planes(torch.cat([one, -one]), ranges)
        least = domain.minimum(below.slopes, below.offset)
        ranges.lower[-1] = torch.fmax(ranges.lower[-1], least[:, : len(one)])
        ranges.upper[-1] = torch.fmin(ranges.upper[-1], -least[:, len(one) :])
        return ranges

    def at(self, x: Tensor) -> Ranges:
        """Every vector at (N, d) points, up to rounding. For guesses only."""
        found = Ranges([x], [x])
        for place in range(1, len(self.graph.steps) + 1):
            low, high = self._interval(place, found)
            found.lower.append(0.5 * (low + high))
            found.upper.append(found.lower[-1])
        return found

    def _interval(self, place: int, ranges: Ranges) -> tuple[Tensor, Tensor]:
        """Bounds of a vector from the ranges of its sources alone."""
        step = self.graph.steps[place - 1]
        between = [(ranges.lower[source], ranges.upper[source]) for source in step.sources]
        if isinstance(step.operation, Elementwise):
            low, high = rule_of(step.operation.kind).range(*between[0])
            return low - self._deployed_rounding(place), high + self._deployed_rounding(place)
        if isinstance(step.operation, Product):
            return product_range(*between)
        if isinstance(step.operation, Enclosed):
            lines, (low, high) = self._enclosing(place, ranges), between[0]
            middle, half = 0.5 * (low + high), 0.5 * (high - low) * (1.0 + 4.0 * self._gamma)
            below, above = lines.below_slopes, lines.above_slopes
            return (
                dots(below, middle) - dots(below.abs(), half) + lines.below_offset,
                dots(above, middle) + dots(above.abs(), half) + lines.above_offset,
            )
        loaded = self._affine[place]
        middle, half = loaded.bias, self._affine_rounding(place, ranges)
        for (low, high), weight, size in zip(between, loaded.weights, loaded.sizes, strict=True):
            middle = middle + (0.5 * (low + high)) @ weight.T
            half = half + (0.5 * (high - low)) @ size
        return middle - half, middle + half

    def _affine_rounding(self, place: int, ranges: Ranges) -> Tensor:
        """(N, size) the effect of rounding at an affine step, per weight."""
        sources = self.graph.steps[place - 1].sources
        kept = ranges._kept.get(("slip", place))
        seen = tuple(tensor for source in sources for tensor in (ranges.lower[source], ranges.upper[source]))
        if kept is None or not _is_same_tensor(kept[0], seen):
            total = self._affine[place].bias.abs()
            for source, size in zip(sources, self._affine[place].sizes, strict=True):
                total = total + ranges.size(source) @ size
            slip = self._affine[place].rate * total + self._affine[place].more
            if math.isfinite(self._largest):  # no intermediate sum overflows
                slip = torch.where(total <= self._largest, slip, torch.inf)
            kept = (seen, slip)
            ranges._kept["slip", place] = kept
        assert isinstance(kept[1], Tensor)
        return kept[1]

    def _deployed_rounding(self, place: int) -> Tensor | float:
        """The deployed network's own rounding at a nonlinear step."""
        return self._bent.get(place, 0.0)

    def _tighten(self, place: int, domain: Domain, ranges: Ranges) -> None:
        """Tighten by planes; for vectors that only ReLUs read, where the sign is open."""
        low, high = ranges.lower[place], ranges.upper[place]
        wanted = torch.ones_like(low, dtype=torch.bool)
        if self._readers[place] == {"relu"}:
            wanted = (low < 0.0) & (high > 0.0)
        ranges.lower[place], ranges.upper[place] = low.clone(), high.clone()
        for group in groups(wanted, max(self.graph.sizes[:place])):
            waiting, offset = self._one_by_one(place, group, ranges)
            plane = self._backward(waiting, torch.cat(offset, dim=1), ranges, NO_CHOICES, group.sets)
            least = domain.take(group.sets).minimum(plane.slopes, plane.offset)
            least = torch.where(group.wanted.repeat(1, 2), least, -torch.inf)
            below, above = least.chunk(2, dim=1)
            at, low_of, high_of = (
                group.values, ranges.lower[place][group.sets], ranges.upper[place][group.sets]
            )  # fmt: skip
            ranges.lower[place][group.sets] = low_of.scatter(1, at, torch.fmax(low_of.gather(1, at), below))
            ranges.upper[place][group.sets] = high_of.scatter(
                1, at, torch.fmin(high_of.gather(1, at), -above)
            )

    def _one_by_one(
        self, place: int, group: SetBatches, ranges: Ranges
    ) -> tuple[dict[int, Tensor], tuple[Tensor, Tensor]]:
        """The values of a group, then their negatives, as weights and offsets."""
        step, chosen = self.graph.steps[place - 1], group.values
        if place not in self._affine:
            rows = torch.nn.functional.one_hot(chosen, step.size).to(self._kind)
            nothing = torch.zeros(chosen.shape, dtype=torch.float64, device=chosen.device)
            return {place: torch.cat([rows, -rows], dim=1)}, (nothing, nothing)
        loaded = self._affine[place]
        waiting: dict[int, Tensor] = {}
        for source, weight in zip(step.sources, loaded.weights, strict=True):
            rows = weight.to(self._kind)[chosen]
            rows = torch.cat([rows, -rows], dim=1)
            waiting[source] = waiting[source] + rows if source in waiting else rows
        slip, bias = self._affine_rounding(place, ranges)[group.sets].gather(1, chosen), loaded.bias[chosen]
        return waiting, (bias - slip, -bias - slip)

    # ---- planes

    def planes(self, rows: Tensor, ranges: Ranges, choices: Choices = NO_CHOICES) -> Planes:
        """Planes below `rows` of the outputs: (S, outputs), or (N, S, outputs)."""
        return self.planes_at(len(self.graph.steps), rows, ranges, choices)

    def planes_at(self, place: int, rows: Tensor, ranges: Ranges, choices: Choices = NO_CHOICES) -> Planes:
        """The same below `rows` of the vector at any place."""
        if rows.dim() == 2:
            rows = rows[None].expand(len(ranges.lower[0]), -1, -1)
        nothing = torch.zeros(rows.shape[:2], dtype=rows.dtype, device=rows.device)
        return self._backward({place: rows.to(self._kind)}, nothing, ranges, choices)

    def _backward(
        self,
        waiting: dict[int, Tensor],
        offset: Tensor,
        ranges: Ranges,
        choices: Choices,
        sets: Tensor | slice = EVERY,
    ) -> Planes:
        """Pass weights of some vectors back to the inputs, on some of the sets; choices are of all sets."""
        in_lines = self._in_lines - set(waiting)
        for here in range(max(waiting), 0, -1):
            require_time()
            A = waiting.pop(here, None)
            if A is None:
                continue
            own = None if here in in_lines else A  # the weights whose offset is not part of a line
            for chosen in (choices.multipliers, choices.held):
                if here in chosen:
                    less = -chosen[here].to(A)
                    A, own = A + less, less if own is None else own + less
            if here in choices.held:
                offset = offset + self._least(here, choices.held[here], ranges, sets).to(offset)
            if here in self._affine:
                carried = [A @ weight for weight in self._affine[here].backwards]
                moved = None if own is None else self._affine_offset(here, own, ranges, sets)
            else:
                carried, moved = self._through_nonlinear(here, A, ranges, choices, sets)
            offset = offset if moved is None else offset + moved.to(offset)
            for source, part in zip(self.graph.steps[here - 1].sources, carried, strict=True):
                waiting[source] = waiting[source] + part if source in waiting else part
        if 0 not in waiting:
            waiting[0] = offset.new_zeros(*offset.shape, self.graph.inputs)
        return Planes(waiting[0].to(offset), offset - self._underflow(ranges, sets))

    def _least(self, here: int, held: Tensor, ranges: Ranges, sets: Tensor | slice) -> Tensor:
        """(N, S) lower bounds of held v between the ranges of v."""
        low, high = ranges.lower[here][sets][:, None], ranges.upper[here][sets][:, None]
        parts = torch.where(held == 0.0, 0.0, held * torch.where(held > 0.0, low, high))
        return parts.sum(2) - self._gamma * parts.abs().sum(2)

    def _underflow(self, ranges: Ranges, sets: Tensor | slice) -> Tensor | float:
        """(N, 1) the possible underflow of float32; negligible in float64."""
        if self._kind is torch.float64:
            return 0.0
        widest, steps = max(self.graph.sizes), len(self.graph.steps)
        total = ranges.size(0)[sets].sum(1, keepdim=True) + steps * widest * LARGEST
        return 4.0 * widest * torch.finfo(self._kind).tiny * total

    def _affine_offset(self, here: int, A: Tensor, ranges: Ranges, sets: Tensor | slice) -> Tensor:
        slip = self._affine_rounding(here, ranges)[sets].expand(len(A), -1)
        return A @ self._affine[here].bias.to(A) - dots(A.abs(), slip.to(A))

    def _through_nonlinear(
        self, here: int, A: Tensor, ranges: Ranges, choices: Choices, sets: Tensor | slice
    ) -> tuple[list[Tensor], Tensor]:
        step = self.graph.steps[here - 1]
        if isinstance(step.operation, Enclosed):
            lines = self._enclosing(here, ranges)
            positive, negative = A.clamp(min=0.0), A.clamp(max=0.0)
            moved = dots(positive, lines.below_offset[sets]) + dots(negative, lines.above_offset[sets])
            return [positive @ lines.below_slopes[sets] + negative @ lines.above_slopes[sets]], moved
        carrying = self._carrying(here, ranges)
        if len(step.sources) == 1 and step.sources[0] not in choices.slopes:
            found, moved = through_lines(A, carrying, sets)
            return [found], moved
        carrying, negative = carrying.take(sets), A.clamp(max=0.0)
        moved = dots(A, carrying.offset) + dots(negative, carrying.offset_gap)
        carried = []
        for source, below, gap in zip(step.sources, carrying.below, carrying.gap, strict=True):
            below, gap = below[:, None], gap[:, None]
            if source in choices.slopes and step.operation == Elementwise("relu"):
                open_sign = ((ranges.lower[source] < 0.0) & (ranges.upper[source] > 0.0))[:, None]
                steeper = torch.where(open_sign, choices.slopes[source].to(below) - below, 0.0)
                below, gap = below + steeper, gap - steeper
                if source in self._in_lines:
                    moved = moved + ((A - negative) * steeper) @ self._affine[source].bias.to(A)
            carried.append(torch.addcmul(A * below, negative, gap))
        return carried, moved

    def _enclosing(self, here: int, ranges: Ranges) -> Enclosing:
        """The lines of a function of a whole vector between its ranges, moved outward by rounding."""
        step = self.graph.steps[here - 1]
        assert isinstance(step.operation, Enclosed)
        (source,) = step.sources
        seen = ranges.lower[source], ranges.upper[source]
        kept = ranges._kept.get(("lines", here))
        if kept is None or not _is_same_tensor(kept[0], seen):
            found = step.operation.lines(*seen)
            steepest = torch.maximum(found.below_slopes.abs(), found.above_slopes.abs())
            size = dots(steepest, ranges.size(source)) + found.below_offset.abs() + found.above_offset.abs()
            noise = self._gamma * size + self._deployed_rounding(here)
            parts = (
                found.below_slopes,
                found.below_offset - noise,
                found.above_slopes,
                found.above_offset + noise,
            )
            kept = (seen, Enclosing(*(part.to(self._kind) for part in parts)))
            ranges._kept["lines", here] = kept
        assert isinstance(kept[1], Enclosing)
        return kept[1]

    def _carrying(self, here: int, ranges: Ranges) -> Carrying:
        """The lines of a nonlinear step between its ranges."""
        step = self.graph.steps[here - 1]
        seen = tuple(one for source in step.sources for one in (ranges.lower[source], ranges.upper[source]))
        kept = ranges._kept.get(("lines", here))
        if kept is None or not _is_same_tensor(kept[0], seen):
            kept = (seen, self._relaxed(here, ranges))
            ranges._kept["lines", here] = kept
        assert isinstance(kept[1], Carrying)
        return kept[1]

    def affine(self, place: int) -> tuple[tuple[Tensor, ...], Tensor]:
        """The weights of an affine step by source, and its constants."""
        return self._affine[place].weights, self._affine[place].bias

    def lines(self, ranges: Ranges) -> dict[int, Relaxation]:
        """The lines of all nonlinear steps between their ranges, by place."""
        places = range(1, len(self.graph.steps) + 1)
        return {here: self._lines(here, ranges) for here in places if here not in self._affine}

    def _lines(self, here: int, ranges: Ranges) -> Relaxation:
        step = self.graph.steps[here - 1]
        between = [(ranges.lower[source], ranges.upper[source]) for source in step.sources]
        if isinstance(step.operation, Elementwise):
            return rule_of(step.operation.kind).lines(*between[0])
        return multiplied(*between)

    def _relaxed(self, here: int, ranges: Ranges) -> Carrying:
        step, found = self.graph.steps[here - 1], self._lines(here, ranges)
        noise = self._gamma * torch.maximum(found.below_offset.abs(), found.above_offset.abs())
        noise = noise + self._deployed_rounding(here)
        offset_below, offset_above = found.below_offset, found.above_offset
        for source, below, above in zip(step.sources, found.below_slopes, found.above_slopes, strict=True):
            steepest = torch.maximum(below.abs(), above.abs())
            if isinstance(step.operation, Elementwise) and step.operation.kind == "relu":
                off = ranges.upper[source] <= 0.0
                steepest = torch.where(off, 0.0, steepest.clamp(min=1.0))  # for any slope
            slip = self._gamma * ranges.size(source)
            if source in self._in_lines:
                bias = self._affine[source].bias
                offset_below, offset_above = offset_below + below * bias, offset_above + above * bias
                slip = slip + self._affine_rounding(source, ranges) + 2.0 * self._gamma * bias.abs()
            noise = noise + torch.where(steepest == 0.0, 0.0, steepest * slip)
        return Carrying(
            tuple(below.to(self._kind) for below in found.below_slopes),
            tuple(
                (above - below).to(self._kind)
                for below, above in zip(found.below_slopes, found.above_slopes, strict=True)
            ),
            (offset_below - noise).to(self._kind),
            (offset_above - offset_below + 2.0 * noise).to(self._kind),
        )


def _is_same_tensor(kept: tuple[Tensor, ...], now: tuple[Tensor, ...]) -> bool:
    return all(a is b for a, b in zip(kept, now, strict=True))
