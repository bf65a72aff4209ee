"""The LP of a box, and the bound that its multipliers prove.

    columns   the host's and the logits; every vector of every network sample
    rows      the host's; v = W u + b for affine steps; output = last vector, within the rounding's slack;
              a line below and one above each nonlinear value (two below a ReLU: v >= 0 and v >= z)

The lines are those of the box, so that they change from node to node; everything else is loaded once. HiGHS
finds multipliers, and `Multipliers.bound` computes the bound that they prove for any box: weights of the
outputs go backwards through the networks (`NetworkPlanes`), with the slopes that the LP chose below its ReLUs
and its reduced costs of neurons held at their ranges; the host's columns collect the resulting weights. Every
bound is rounded outward, and any multipliers give a valid bound. So the multipliers of a node bound its
children before these have an LP of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from dovetail.bounds.box import UNIT
from dovetail.bounds.dual_value import dual_value
from dovetail.bounds.planes.relaxation import multiplied, rule_of
from dovetail.branching.effort import count_multipliers, count_program
from dovetail.branching.host import HostRows
from dovetail.branching.networks import NetworkSamples, NetworkWeights
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import EngineError, ModelError
from dovetail.mip.loaded_highs import LoadedHighs, SparseRows
from dovetail.mip.program import LinearProgram
from dovetail.networks.functions import FUNCTIONS
from dovetail.networks.graph import Affine, Elementwise
from dovetail.run.budget import Budget
from dovetail.run.engine import MipStatus

LEAST_HEIGHT = 1e-12
"""Smallest height of a triangle used as a divisor."""
LEAST_PRICE = 1e-12
"""Below this the two lines under a ReLU have no price, and its lower slope is arbitrary."""


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Multipliers for N boxes: of the linear rows, and of the networks."""

    rows: FloatArray
    """(N, rows)."""
    networks: tuple[NetworkWeights, ...]
    cost: FloatArray
    """(N, columns) the function to bound: the cost, or another linear function."""
    offset: FloatArray
    """(N,) its constant."""

    @classmethod
    def joined(cls, several: Sequence[Multipliers]) -> Multipliers:
        """The multipliers of several boxes, concatenated."""
        networks = tuple(
            NetworkWeights.joined(parts) for parts in zip(*(m.networks for m in several), strict=True)
        )
        rows, cost = np.concatenate([m.rows for m in several]), np.concatenate([m.cost for m in several])
        return cls(rows, networks, cost, np.concatenate([m.offset for m in several]))

    def take(self, boxes: IntArray) -> Multipliers:
        """The multipliers of some boxes, by number."""
        networks = tuple(one.take(boxes) for one in self.networks)
        return Multipliers(self.rows[boxes], networks, self.cost[boxes], self.offset[boxes])

    def bound(
        self,
        host: HostRows,
        networks: Sequence[NetworkSamples],
        lower: FloatArray,
        upper: FloatArray,
        cutoff: float,
    ) -> tuple[FloatArray, FloatArray]:
        """(N,) lower bounds over the boxes, and (N, columns) reduced costs: the least increase per unit away
        from the cheaper bound. The boxes are tightened, and the last row limits the cost by `cutoff`."""
        entries = host.A.nnz + sum(one.samples * one.entries for one in networks)
        count_multipliers(len(networks), len(lower) * entries)
        n, low, high = host.columns, lower[:, : host.columns], upper[:, : host.columns]
        top = np.append(host.row_upper[:-1], host.limit(cutoff))
        bottom = host.lower_sides(lower, upper)
        y = np.where((self.rows > 0.0) & ~np.isfinite(bottom), 0.0, self.rows)
        y = np.where((y < 0.0) & ~np.isfinite(top), 0.0, y)
        side = np.where(
            y > 0.0,
            np.where(np.isfinite(bottom), bottom, 0.0),
            np.where(np.isfinite(top), top, 0.0),
        )
        reduced = self.cost - (host.transposed @ y.T).T
        size = np.abs(self.cost) + (host.transposed_sizes @ np.abs(y).T).T
        constant, sizes = (y * side).sum(1), np.abs(y * side).sum(1)
        for one, weights in zip(networks, self.networks, strict=True):
            m = weights.outputs.numpy()
            slopes, offsets = one.below(weights, lower, upper)
            moved, columns = np.abs(m) * one.slack, one.outputs.ravel()
            constant += (offsets - moved.sum(2)).sum(1)
            sizes += (np.abs(offsets) + moved.sum(2)).sum(1)
            for at, values in (
                (columns, -m.reshape(len(m), -1)),
                (one.inputs.ravel(), slopes.reshape(len(m), -1)),
            ):
                np.add.at(reduced.T, at, values.T)
                np.add.at(size.T, at, np.abs(values).T)
        noise = 2.0 * UNIT * (host.entries + 2.0) * size
        parts = np.minimum(_least(reduced - noise, low, high), _least(reduced + noise, low, high))
        value = constant + parts.sum(1) + self.offset
        sizes = sizes + np.abs(parts).sum(1) + np.abs(self.offset)
        value = value - 2.0 * UNIT * (n + host.A.shape[0] + 8.0 * len(networks) + 8.0) * sizes
        shrunk = np.sign(reduced) * np.maximum(np.abs(reduced) - noise, 0.0)
        return np.where(np.isnan(value), -np.inf, value), shrunk

    def in_fractions(
        self, host: HostRows, lower: FloatArray, upper: FloatArray, cutoff: float, box: int
    ) -> float:
        """The bound of one box without networks whose columns are unbounded: whether reduced costs vanish is
        decided in fractions (`dual_value`)."""
        n, offset = host.columns, float(self.offset[box])
        try:
            mip = host.program(cutoff)
        except ModelError:  # the cost is too large for a row
            return -np.inf
        return dual_value(mip, self.cost[box], offset, self.rows[box], lower[:n], upper[:n])


def _between(columns: IntArray, lower: FloatArray, upper: FloatArray) -> tuple[Tensor, Tensor]:
    """(N samples, size) bounds of a vector over N boxes."""
    size = columns.shape[1]
    return torch.from_numpy(lower[:, columns].reshape(-1, size)), torch.from_numpy(
        upper[:, columns].reshape(-1, size)
    )


def _least(factor: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    bound = np.where(factor > 0.0, lower, upper)
    return np.where(factor == 0.0, 0.0, factor * np.where(factor == 0.0, 0.0, bound))


@dataclass(frozen=True, eq=False)
class Solved:
    """The result of the LP of one box."""

    x: FloatArray | None
    """Number of all columns of the LP."""
    multipliers: Multipliers | None
    infeasible: bool = False
    """HiGHS's status: the multipliers are those of a ray, and bound the cost 0 only."""
    wrong: tuple[Mapping[int, FloatArray], ...] = ()
    """For each network, by place of the result of a nonlinear step: (samples, size) the difference of the
    LP's value from the step's own value, times its effect on the LP's cost, per unit of the step's height
    in the box (`NetworkSamples.heights`), so that it can be estimated in smaller boxes. Only of LPs with
    the problem's own cost."""
    worth: float = -np.inf
    """An estimate of the point's cost with the networks' own outputs."""


class _Raw(NamedTuple):
    """HiGHS's answer for one box."""

    asked: FloatArray
    """The minimised cost; 0 if the rows of the box are contradictory."""
    own: bool
    """Whether the objective is the problem's cost."""
    x: FloatArray | None
    y: FloatArray | None
    infeasible: bool


@dataclass(frozen=True, eq=False)
class _Bend:
    """A nonlinear step of a network's samples, with the columns of the LP that it writes and reads."""

    kind: str
    """A function's name, or "" for a product."""
    gives: IntArray
    reads: tuple[IntArray, ...]
    sources: tuple[int, ...]
    """The places of the vectors that the step reads."""
    place: int
    """The place of the resulting vector."""


class _Rows:
    """Rows under construction."""

    def __init__(self) -> None:
        self.count = 0
        self.parts: list[tuple[FloatArray, IntArray, IntArray, FloatArray, FloatArray]] = []

    def add(
        self, terms: Sequence[tuple[FloatArray, IntArray]], lower: FloatArray, upper: FloatArray
    ) -> slice:
        """Add one row per limit; each term has (rows, k) entries and columns."""
        entries = np.concatenate([np.broadcast_to(a, c.shape) for a, c in terms], axis=1)
        columns = np.concatenate([c for _, c in terms], axis=1)
        rows = np.broadcast_to(np.arange(self.count, self.count + len(columns))[:, None], columns.shape)
        self.parts.append((entries.ravel(), rows.ravel(), columns.ravel(), lower, upper))
        self.count += len(columns)
        return slice(self.count - len(columns), self.count)

    def matrix(self, columns: int) -> tuple[sp.csr_array, FloatArray, FloatArray]:
        """The matrix of all rows, and their limits."""
        none = (np.empty(0), *np.empty((2, 0), dtype=np.int64), np.empty(0), np.empty(0))
        a, rows, where, lower, upper = (np.concatenate(p) for p in zip(none, *self.parts, strict=True))
        kept = a != 0.0
        A = sp.csr_array((a[kept], (rows[kept], where[kept])), shape=(self.count, columns))
        return A, lower, upper


class TriangleLp:
    """The LP of all boxes of one problem."""

    def __init__(
        self,
        host: HostRows,
        networks: Sequence[NetworkSamples],
        lower: FloatArray,
        upper: FloatArray,
        *,
        seed: int,
        threads: int,
    ) -> None:
        self._host, self._networks, self._boxed = host, tuple(networks), lower.size
        count_program(sum(one.samples * one.entries for one in networks))
        self._places = self._numbered()
        self._bends = [self._bends_of(one, at) for one, at in zip(networks, self._places, strict=True)]
        above = [b.gives.ravel() for bends in self._bends for b in bends if b.kind == "relu"]
        self._floor = np.concatenate([np.empty(0, dtype=np.int64), *above])
        rows = _Rows()
        at = np.repeat(np.arange(host.A.shape[0]), np.diff(host.A.indptr))
        self._outputs: list[slice] = []
        self._steeper: list[dict[int, slice]] = []
        for one, places, bends in zip(networks, self._places, self._bends, strict=True):
            self._affine(rows, one, places)
            last = places[len(one.graph.steps)]
            pair = [(ONE, one.outputs.reshape(-1, 1)), (-ONE, last.reshape(-1, 1))]
            self._outputs.append(rows.add(pair, -one.slack.ravel(), one.slack.ravel()))
            self._steeper.append({b.sources[0]: _rising(rows, b) for b in bends if b.kind == "relu"})
        A, low, high = rows.matrix(self.columns)
        own = sp.csr_array((host.A.data, (at, host.A.indices)), shape=(host.A.shape[0], self.columns))
        self._fixed = sp.csr_array(sp.vstack([own, A], format="csr"))
        self._fixed_columns = self._fixed.T.tocsr()
        self._shape, self._own = self._line_rows()
        lengths = np.diff(self._shape.indptr)
        self._line_of = np.repeat(np.arange(lengths.size), lengths)
        self._program = LinearProgram(
            self._fixed,
            np.append(host.row_lower, low),
            np.append(host.row_upper, high),
            *self._bounds(lower, upper),
            np.zeros(self.columns, dtype=bool),
        )
        self._seed, self._threads = seed, threads
        self._begin()

    def _begin(self) -> None:
        """A HiGHS object without a box."""
        self._live = LoadedHighs(self._program, seed=self._seed, threads=self._threads)
        self._live.without_presolve()

    def _numbered(self) -> list[dict[int, IntArray]]:
        """(samples, size) columns of the LP, by network and place; bounded vectors have their own."""
        found, self.columns = [], self._boxed
        for one in self._networks:
            places = {0: one.inputs, **one.inner}
            for place, size in enumerate(one.graph.sizes):
                if place not in places:
                    fresh = np.arange(self.columns, self.columns + one.samples * size)
                    places[place], self.columns = fresh.reshape(-1, size), self.columns + fresh.size
            found.append(places)
        return found

    @staticmethod
    def _bends_of(one: NetworkSamples, places: dict[int, IntArray]) -> list[_Bend]:
        return [
            _Bend(
                step.operation.kind if isinstance(step.operation, Elementwise) else "",
                places[place],
                tuple(places[source] for source in step.sources),
                step.sources,
                place,
            )
            for place, step in enumerate(one.graph.steps, start=1)
            if not isinstance(step.operation, Affine)
        ]

    @staticmethod
    def _affine(rows: _Rows, one: NetworkSamples, places: dict[int, IntArray]) -> None:
        """v - W u = b for every affine step."""
        for place, step in enumerate(one.graph.steps, start=1):
            if not isinstance(step.operation, Affine):
                continue
            terms = [(ONE, places[place].reshape(-1, 1))]
            for weight, source in zip(step.operation.weights, step.sources, strict=True):
                read = np.repeat(places[source], step.size, axis=0)
                terms.append((-np.tile(weight, (one.samples, 1)), read))
            bias = np.tile(step.operation.bias, one.samples)
            rows.add(terms, bias, bias)

    def _bounds(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The bounds of a box; other columns are free, except that ReLUs are nonnegative."""
        more = np.full(self.columns - self._boxed, np.inf)
        low, high = np.append(lower, -more), np.append(upper, more)
        low[self._floor] = np.maximum(low[self._floor], 0.0)
        return low, np.maximum(low, high)

    def _line_rows(self) -> tuple[SparseRows, list[list[slice]]]:
        """The pattern of the rows that depend on a box: for each nonlinear step a line above every value,
        and a line below for all but ReLUs."""
        rows, own = _Rows(), []
        for bends in self._bends:
            for bend in bends:
                terms = [(ONE, columns.reshape(-1, 1)) for columns in (bend.gives, *bend.reads)]
                nothing = np.zeros(bend.gives.size)
                own.append(
                    [rows.add(terms, nothing, nothing) for _ in range(1 if bend.kind == "relu" else 2)]
                )
        indices = np.concatenate([np.empty(0, np.int64), *(columns for _, _, columns, *_ in rows.parts)])
        lengths = [rows.parts[k][0].size // rows.parts[k][3].size for k in range(len(rows.parts))]
        each = np.repeat(lengths, [part[3].size for part in rows.parts]) if lengths else np.empty(0, int)
        indptr = np.append(0, np.cumsum(each))
        return SparseRows(np.ones(indices.size), indices, indptr), own

    def _lines(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(N, entries) coefficients of those rows for N boxes, and (N, rows) their limits."""
        entries, below, above = [], [], []
        for one, bends in zip(self._networks, self._bends, strict=True):
            for bend in bends:
                between = [_between(one.column(source), lower, upper) for source in bend.sources]
                lines = multiplied(*between) if not bend.kind else rule_of(bend.kind).lines(*between[0])
                for kind in ("above", "below")[: 1 if bend.kind == "relu" else 2]:
                    slopes = getattr(lines, f"{kind}_slopes")
                    offset = getattr(lines, f"{kind}_offset").numpy().reshape(len(lower), -1)
                    parts = [
                        np.ones_like(offset),
                        *(-slope.numpy().reshape(offset.shape) for slope in slopes),
                    ]
                    entries.append(np.stack(parts, 2).reshape(len(lower), -1))
                    below.append(offset if kind == "below" else np.full_like(offset, -np.inf))
                    above.append(offset if kind == "above" else np.full_like(offset, np.inf))
        nothing = np.empty((len(lower), 0))
        return tuple(np.concatenate([nothing, *parts], axis=1) for parts in (entries, below, above))  # type: ignore[return-value]

    def solve(
        self,
        lower: FloatArray,
        upper: FloatArray,
        budget: Budget,
    ) -> list[Solved]:
        """Minimise the cost over each of N tightened boxes. Simplex begins at the basis of the box
        before: one per box saves a third of the pivots and no time."""
        lines, raw = self._lines(lower, upper), list[_Raw]()
        for k in range(len(lower)):
            self._load(lower[k], upper[k], *(part[k] for part in lines))
            raw.append(self._tried(None, np.inf, budget))
        return self._judged(raw, lower, upper, lines[0])

    def again(self, cost: FloatArray | None, cutoff: float, budget: Budget) -> Solved:
        """The same box with another cost; `cutoff` limits the last row."""
        lower, upper, entries, *_ = self._box
        raw = self._tried(cost, cutoff, budget)
        return self._judged([raw], lower[None], upper[None], entries[None])[0]

    def _tried(self, cost: FloatArray | None, cutoff: float, budget: Budget) -> _Raw:
        """Run simplex; after a failure once more without the basis of another box."""
        try:
            return self._run(cost, cutoff, budget)
        except EngineError:
            self._begin()
            self._load(*self._box)
        try:
            return self._run(cost, cutoff, budget)
        except EngineError:
            return _Raw(np.zeros(self.columns), False, None, None, False)

    def _run(self, cost: FloatArray | None, cutoff: float, budget: Budget) -> _Raw:
        host, asked = self._host, np.zeros(self.columns)
        own = host.cost if cost is None else cost
        asked[: own.size] = own
        self._live.set_row_limits(host.A.shape[0] - 1, -np.inf, cutoff - host.offset)
        self._live.set_objective(asked, 0.0)
        status, x, _ = self._live.run(budget, 0.0)
        infeasible = status is MipStatus.INFEASIBLE
        if infeasible:
            y = self._live.dual_ray()
            asked[:] = 0.0
        else:
            y = None if x is None else self._live.row_duals()
        if y is not None and not np.all(np.isfinite(y)):
            y = None
        return _Raw(asked, cost is None, x, y, infeasible)

    def _judged(
        self, raw: Sequence[_Raw], lower: FloatArray, upper: FloatArray, entries: FloatArray
    ) -> list[Solved]:
        """The results of N answers, for all boxes at once."""
        solved = [Solved(one.x, None, one.infeasible) for one in raw]
        told = [k for k, one in enumerate(raw) if one.y is not None]
        if not told:
            return solved
        y = np.stack([one.y for one in raw if one.y is not None])
        cost = np.stack([raw[k].asked for k in told])
        own = np.array([raw[k].own and not raw[k].infeasible for k in told])
        offset = np.where(own, self._host.offset, 0.0)
        multipliers = self._multipliers(y, cost, offset, entries[told])
        for place, k in enumerate(told):
            solved[k] = replace(solved[k], multipliers=multipliers.take(np.array([place])))
        for place, k in enumerate(told):
            if (x := raw[k].x) is not None:
                x[: self._boxed] = np.clip(x[: self._boxed], lower[k], upper[k])
                solved[k] = replace(solved[k], worth=float(cost[place] @ x + offset[place]))
        points = [(place, k, x) for place, k in enumerate(told) if own[place] and (x := raw[k].x) is not None]
        if points:
            boxes = [k for _, k, _ in points]
            x, prices = np.stack([x for *_, x in points]), y[[place for place, *_ in points]]
            wrong, change = self._errors(x, prices, lower[boxes], upper[boxes])
            for place, k in enumerate(boxes):
                parts = tuple({at: values[place] for at, values in one.items()} for one in wrong)
                solved[k] = replace(solved[k], wrong=parts, worth=solved[k].worth + float(change[place]))
        return solved

    def _errors(
        self, x: FloatArray, y: FloatArray, lower: FloatArray, upper: FloatArray
    ) -> tuple[list[dict[int, FloatArray]], FloatArray]:
        """The cost of a unit of height of nonlinear steps (see `Solved`) in N boxes; and the change of the
        cost with the networks' own outputs, at the LP's prices."""
        found, own, first, change = [], iter(self._own), self._fixed.shape[0], np.zeros(len(x))
        rows = self._host.A.shape[0]
        flows = np.abs(self._host.cost) + (self._host.transposed_sizes @ np.abs(y[:, :rows]).T).T
        for one, bends, outputs in zip(self._networks, self._bends, self._outputs, strict=True):
            errors: dict[int, FloatArray] = {}
            gaps: dict[int, FloatArray] = {}
            for bend in bends:
                read = [x[:, columns] for columns in bend.reads]
                value = FUNCTIONS[bend.kind].value(read[0]) if bend.kind else read[0] * read[1]
                prices = sum(np.abs(y[:, first + lines.start : first + lines.stop]) for lines in next(own))
                apart = np.abs(x[:, bend.gives] - value)
                errors[bend.place] = apart * (LEAST_PRICE + np.reshape(prices, value.shape))
                gaps[bend.place] = apart * one.path_weights[bend.place]
            if not errors:  # the step is linear, and the LP is exact there
                found.append(errors)
                continue
            m = y[:, rows + outputs.start : rows + outputs.stop].reshape(len(x), *one.outputs.shape)
            wrong = one.vectors(x[:, one.inputs])[-1] - x[:, one.outputs]
            change += (m * wrong).sum((1, 2))
            paid = (np.abs(wrong) * 0.5 * (flows[:, one.outputs] + np.abs(m))).sum(2)
            seen = np.sum([error.sum(2) for error in errors.values()], axis=0)
            every = np.sum([apart.sum(2) for apart in gaps.values()], axis=0)
            more = np.where(every > 0.0, (paid - seen).clip(min=0.0) / np.maximum(every, 1e-300), 0.0)
            found.append(
                {
                    place: np.where(
                        high > 0.0,
                        (errors[place] + more[..., None] * gaps[place]) / np.maximum(high, LEAST_HEIGHT),
                        0.0,
                    )
                    for place, _, high in one.heights(lower, upper)
                }
            )
        return found, change

    def load(self, lower: FloatArray, upper: FloatArray) -> None:
        """Load one tightened box, for `again`."""
        self._load(lower, upper, *(part[0] for part in self._lines(lower[None], upper[None])))

    def _load(
        self, lower: FloatArray, upper: FloatArray, entries: FloatArray, below: FloatArray, above: FloatArray
    ) -> None:
        """Load a box: its bounds and its lines."""
        self._box = (lower, upper, entries, below, above)
        self._live.set_bounds(*self._bounds(lower, upper))
        if self._host.local:
            sides = self._host.lower_sides(lower[None], upper[None])[0, self._host.lasting : -1]
            for row, side in enumerate(sides.tolist(), start=self._host.lasting):
                self._live.set_row_limits(row, side, np.inf)
        if below.size:
            rows = SparseRows(entries, self._shape.indices, self._shape.indptr)
            self._live.replace_rows(self._fixed.shape[0], rows, below, above)

    def _multipliers(
        self, y: FloatArray, cost: FloatArray, offset: FloatArray, entries: FloatArray
    ) -> Multipliers:
        """The multipliers of N boxes, in the form for planes."""
        host, fixed, count = self._host, self._fixed.shape[0], len(y)
        reduced, lined = cost - (self._fixed_columns @ y[:, :fixed].T).T, y[:, fixed:]
        for k, paid in enumerate(entries * lined[:, self._line_of]):
            reduced[k] -= np.bincount(self._shape.indices, paid, self.columns)
        networks, own = [], iter(self._own)
        inside = bool(np.any(cost[:, host.columns :]))
        for one, bends, outputs, steeper in zip(
            self._networks, self._bends, self._outputs, self._steeper, strict=True
        ):
            first = host.A.shape[0]
            m = y[:, first + outputs.start : first + outputs.stop].reshape(count, *one.outputs.shape)
            held = {place: reduced[:, columns] for place, columns in one.inner.items()}
            slopes = {}
            for bend in bends:
                lines, shape = next(own), (count, *bend.gives.shape)
                above = -lined[:, lines[0]].clip(max=0.0)
                steep = [-part for part in self._entries_of(entries, lines[0], len(bend.sources))]
                if bend.kind == "relu":
                    rows = steeper[bend.sources[0]]
                    rising = y[:, first + rows.start : first + rows.stop].clip(min=0.0)
                    below = rising + reduced[:, bend.gives.ravel()].clip(min=0.0)
                    slope = np.where(below > LEAST_PRICE, rising / np.maximum(below, LEAST_PRICE), 0.5)
                    slopes[bend.sources[0]] = torch.from_numpy(slope.reshape(shape))
                    sure = (steep[0] <= 0.0) | (steep[0] >= 1.0)  # the sign is known, and both lines are one
                    under, flat = [rising], [np.where(sure, steep[0], slope)]
                else:
                    below = lined[:, lines[1]].clip(min=0.0)
                    flat = [-part for part in self._entries_of(entries, lines[1], len(bend.sources))]
                    under = [below * part for part in flat]
                net = below - above
                for source, a, b, u in zip(bend.sources, steep, flat, under, strict=True):
                    if source:  # the weights passed on by planes, minus those of the LP
                        more = net * np.where(net > 0.0, b, a) - (u - above * a)
                        held[source] += more.reshape(shape)
            less = {place: torch.from_numpy(-cost[:, c]) for place, c in one.inner.items() if inside}
            holds = {place: torch.from_numpy(values) for place, values in held.items()}
            networks.append(NetworkWeights(torch.from_numpy(m.copy()), slopes, less, holds))
        return Multipliers(y[:, : host.A.shape[0]], tuple(networks), cost[:, : host.columns], offset)

    def _entries_of(self, entries: FloatArray, rows: slice, sources: int) -> list[FloatArray]:
        """(N, rows) entries of the vectors that the lines of one step read, vector by vector."""
        first = self._shape.indptr[rows.start]
        some = entries[:, first : first + (rows.stop - rows.start) * (1 + sources)]
        some = some.reshape(len(entries), -1, 1 + sources)
        return [some[:, :, k] for k in range(1, 1 + sources)]


ONE = np.ones((1, 1))


def _rising(rows: _Rows, bend: _Bend) -> slice:
    """v - z >= 0 for the ReLUs of a step."""
    nothing = np.zeros(bend.gives.size)
    pair = [(ONE, bend.gives.reshape(-1, 1)), (-ONE, bend.reads[0].reshape(-1, 1))]
    return rows.add(pair, nothing, nothing + np.inf)
