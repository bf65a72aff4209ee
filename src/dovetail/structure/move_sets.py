"""The inputs of one sample of a block as a closed-form set, if the constraints make them one.

x = origin + directions t, 0 <= t <= limit, least <= weights't <= most. Inputs that an equation defines (x =
w + a - b) are expressed by the other columns of that equation; other inputs are moves themselves. The
longest of the other rows is kept, and the set lists the rows, bounds and integrality conditions that it
ignores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch

from dovetail.bounds.box import UNIT, Box
from dovetail.bounds.planes.moves import Moves
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.deadline import require_time
from dovetail.core.mip import TOLERANCE, Mip
from dovetail.core.problem import Problem
from dovetail.core.sparse import entries_of
from dovetail.core.words import several
from dovetail.structure.components import SampleComponent

NOISE = 16.0 * UNIT
"""Relative rounding of the few operations by which the numbers are computed."""

MOST_NAMED = 3
"""Largest number of rows and bounds named in a message."""

Entries = dict[int, float]
"""A row as a dictionary by column, which is faster than matrices for many small components."""


@dataclass(frozen=True, eq=False)
class MoveSet:
    """The set of one component's inputs, and the columns of its moves: column = start + sign t."""

    inputs: IntArray
    """(d,) columns."""
    columns: IntArray
    """(m,) columns of the moves."""
    start: FloatArray
    sign: FloatArray
    directions: FloatArray
    """(d, m)."""
    origin: FloatArray
    limit: FloatArray
    weights: FloatArray
    least: float
    most: float
    give: FloatArray
    """(d,) the possible change of an input because its defining row may be violated within tolerances."""
    rows_left_out: tuple[int, ...] = ()
    """Rows of the component that points of the set may violate."""
    bounds_left_out: tuple[int, ...] = ()
    """Inputs and outputs whose bounds the points of the set may violate."""
    integers_left_out: tuple[int, ...] = ()
    """Integers that may be fractional in the set."""

    def violated(self, mip: Mip, z: FloatArray) -> str:
        """The names of restrictions that the set ignores and that a point violates; "" if there are none.
        Only names given by the owner are used."""
        parts = self.rows_left_out, self.bounds_left_out, self.integers_left_out
        rows, bounds, integers = (np.array(part, dtype=np.int64) for part in parts)
        activity = mip.A[rows] @ z
        beyond = np.maximum(mip.row_lower[rows] - activity, activity - mip.row_upper[rows])
        rows = rows[beyond > TOLERANCE]
        beyond = np.maximum(mip.lower[bounds] - z[bounds], z[bounds] - mip.upper[bounds])
        bounds = bounds[beyond > TOLERANCE]
        integers = integers[np.abs(z[integers] - np.round(z[integers])) > TOLERANCE]
        named = (rows, mip.row_names, "row"), (bounds, mip.names, "column"), (integers, mip.names, "column")
        kinds = "{}", "the bounds of {}", "the integrality of {}"
        return ", ".join(
            kind.format(_names_or_number(*about))
            for kind, about in zip(kinds, named, strict=True)
            if about[0].size
        )

    def costs(self, cost: FloatArray) -> tuple[FloatArray, float]:
        """(m,) costs of the moves, and a constant: the least cost of the component's columns except
        outputs."""
        defined = ~np.isin(self.inputs, self.columns)
        on_inputs = np.where(defined, cost[self.inputs], 0.0)
        per_move = cost[self.columns] * self.sign + on_inputs @ self.directions
        terms = np.concatenate(
            [cost[self.columns] * self.start, on_inputs * self.origin, -np.abs(on_inputs) * self.give]
        )
        noise = NOISE * (terms.size + self.inputs.size) * float(np.abs(terms).sum())
        # an error in the cost of a move counts for its whole length
        sizes = np.abs(cost[self.columns]) + np.abs(on_inputs) @ np.abs(self.directions)
        noise += NOISE * (self.inputs.size + 2) * float(sizes @ self.limit)
        return per_move, float(terms.sum()) - noise

    def values(self, moves: FloatArray, mip: Mip) -> tuple[FloatArray, FloatArray]:
        """The inputs and the columns of the moves at given moves; columns are clipped to the bounds of
        `mip`."""
        columns = np.clip(self.start + self.sign * moves, mip.lower[self.columns], mip.upper[self.columns])
        return self.origin + self.directions @ (self.sign * (columns - self.start)), columns


def moves_of(sets: Sequence[MoveSet], device: str = "cpu") -> Moves:
    """Several moves with the same directions, side by side."""
    names = "origin", "limit", "weights", "least", "most", "give"
    arrays = sets[0].directions, *(np.array([getattr(one, name) for one in sets]) for name in names)
    return Moves.of(*(torch.as_tensor(array, dtype=torch.float64, device=device) for array in arrays))


def _names_or_number(places: IntArray, names: Sequence[str] | None, noun: str) -> str:
    """A few names, or their number."""
    if names is None:
        return several(places.size, noun)
    some = ", ".join(names[k] for k in places[:MOST_NAMED].tolist())
    return some + (f" and {places.size - MOST_NAMED} more" if places.size > MOST_NAMED else "")


def move_set(
    problem: Problem, part: SampleComponent, box: Box, room: float, *, projected: bool = False
) -> MoveSet | None:
    """The set of a component with one sample; None if there is no such set. Its points violate rows by at
    most `room` and are in the box. `projected`: the kept row may have columns outside the component, and is
    relaxed by their range."""
    require_time()
    mip, inputs = problem.mip, part.block.inputs[part.sample]
    reads, outputs = inputs.tolist(), set(part.block.outputs[part.sample].tolist())
    own = [j for j in part.members.tolist() if j not in outputs]
    mine = set(own)
    fixed = [j for j in reads if j not in mine]  # columns that cannot move belong to no component
    if len(set(reads)) < len(reads) or np.any(mip.lower[fixed] < mip.upper[fixed]):
        return None
    local = [_entries(mip.A, i) for i in part.rows.tolist()]
    definition = _definitions(mip, local, part.rows, set(reads), mine)
    columns = np.array([*(j for j in own if j not in definition), *fixed], dtype=np.int64)
    lower, upper = box.lower[columns], box.upper[columns]
    if not np.all(np.isfinite(lower) & np.isfinite(upper)):
        return None
    frame = _MoveFrame(mip, part, local, columns, definition, lower, room)
    lower, upper = box.lower[frame.columns], box.upper[frame.columns]
    limit = (upper - lower) * (1.0 + NOISE)
    longest = frame.longest_row(local, projected=projected)
    row = _MoveRow(np.zeros(limit.size), -np.inf, np.inf)
    if longest is not None:
        row = frame.row(mip, local[longest], int(part.rows[longest]), limit, box)
    left = [int(i) for k, i in enumerate(part.rows) if k != longest and k not in frame.spent and local[k]]
    down, up = (side(frame.directions, 0.0) @ limit for side in (np.minimum, np.maximum))
    beyond = frame.origin + down < mip.lower[inputs] - frame.give
    beyond |= frame.origin + up > mip.upper[inputs] + frame.give
    written = part.block.outputs[part.sample]
    limited = np.isfinite(mip.lower[written]) | np.isfinite(mip.upper[written])
    bounds = [*inputs[beyond & frame.defined], *written[limited & (not part.block.classifies)]]
    whole = [j for j in own if mip.integer[j] and mip.lower[j] < mip.upper[j]]
    return replace(
        _with_row(frame, lower, upper, limit, row),
        rows_left_out=tuple(left),
        bounds_left_out=tuple(int(j) for j in bounds),
        integers_left_out=tuple(whole),
    )


def _with_row(
    frame: _MoveFrame, lower: FloatArray, upper: FloatArray, limit: FloatArray, row: _MoveRow
) -> MoveSet:
    """A set with a row; moves with negative weights are counted from their other end."""
    weights, turned = np.abs(row.weights), row.weights < 0.0
    end, sign = np.where(turned, limit, 0.0), np.where(turned, -1.0, 1.0)
    origin, give, directions, room = frame.origin, frame.give, frame.directions, 0.0
    if np.any(turned):
        origin = origin + directions @ end
        give = give + NOISE * (limit.size + 2) * (np.abs(origin) + np.abs(directions) @ end)
        room = NOISE * (limit.size + 2) * float(weights @ limit)
    moved = float(row.weights @ end)
    directions = directions * sign + 0.0  # -0 is 0
    order = np.lexsort(-directions[::-1])  # equal sets get the same order, wherever their columns are
    return MoveSet(
        frame.inputs, frame.columns[order], np.where(turned, upper, lower)[order], sign[order],
        directions[:, order], origin, limit[order], weights[order], row.least - moved - room,
        row.most - moved + room, give,
    )  # fmt: skip


def _definitions(
    mip: Mip, local: list[Entries], rows: IntArray, reads: set[int], mine: set[int]
) -> dict[int, int]:
    """For each input the place in `rows` of an equation that defines it by other columns of the component."""
    found: dict[int, int] = {}
    equal = (mip.row_lower[rows] == mip.row_upper[rows]).tolist()
    for k, columns in enumerate(local):
        here = [j for j in columns if j in reads]
        if not equal[k] or len(here) != 1 or len(columns) < 2:
            continue
        if here[0] not in found and mine.issuperset(columns):
            found[here[0]] = k
    return found


class _MoveRow(NamedTuple):
    """least <= weights't <= most."""

    weights: FloatArray
    least: float
    most: float


class _MoveFrame:
    """Inputs in terms of moves, which are counted from their lower bounds."""

    def __init__(
        self, mip: Mip, part: SampleComponent, local: list[Entries], columns: IntArray,
        definition: dict[int, int], lower: FloatArray, room: float,
    ) -> None:  # fmt: skip
        """Solve each defining row for its input."""
        inputs = part.block.inputs[part.sample]
        self.inputs, self._room = inputs, room
        self.defined = np.array([j in definition for j in inputs.tolist()])
        """(d,) inputs that are defined by moves."""
        self.spent = set(definition.values())
        """Places of the defining rows."""
        place = {j: k for k, j in enumerate(columns.tolist())}
        directions = np.zeros((inputs.size, columns.size))
        constant, tolerance = np.zeros(inputs.size), np.zeros(inputs.size)
        for i, j in enumerate(inputs.tolist()):
            if j not in definition:
                directions[i, place[j]] = 1.0
                continue
            k = definition[j]
            own = local[k][j]
            for other, entry in local[k].items():
                if other != j:
                    directions[i, place[other]] = -entry / own
            constant[i], tolerance[i] = mip.row_upper[part.rows[k]] / own, room / abs(own) * (1.0 + NOISE)
        order = np.lexsort(-directions[::-1])  # sums over the same moves are equal to the last digit
        directions, self.columns, self._lower = directions[:, order], columns[order], lower[order]
        size = np.abs(constant) + np.abs(directions) @ np.abs(self._lower)
        self.directions, self.origin = directions, constant + directions @ self._lower
        self.give = tolerance + NOISE * (columns.size + 2) * size

    def longest_row(self, local: list[Entries], *, projected: bool) -> int | None:
        """The row with most moves and inputs that defines no input; with moves and inputs only, or
        `projected` onto them."""
        known = {*self.columns.tolist(), *self.inputs.tolist()}
        seen = [len(known.intersection(entries)) for entries in local]
        rest = [k for k in range(len(local)) if k not in self.spent]
        fit = [k for k in rest if seen[k] == len(local[k]) or (projected and seen[k] > 1)]
        return max(fit, key=lambda k: seen[k], default=None)

    def row(self, mip: Mip, entries: Entries, number: int, limit: FloatArray, box: Box) -> _MoveRow:
        """A row of the problem over moves; its other columns vary in the box."""
        on_moves = np.array([entries.get(j, 0.0) for j in self.columns.tolist()])
        on_inputs = np.array([entries.get(j, 0.0) for j in self.inputs.tolist()]) * self.defined
        weights = on_moves + on_inputs @ self.directions
        constant = float(on_moves @ self._lower + on_inputs @ self.origin)
        size = float(np.abs(on_moves) @ np.abs(self._lower) + np.abs(on_inputs) @ np.abs(self.origin))
        size += float((np.abs(on_moves) + np.abs(on_inputs) @ np.abs(self.directions)) @ limit)
        room = self._room * (1.0 + NOISE) + float(np.abs(on_inputs) @ self.give) * (1.0 + NOISE)
        room += NOISE * (limit.size + self.inputs.size) * size
        known = {*self.columns.tolist(), *self.inputs.tolist()}
        other = np.array([j for j, entry in entries.items() if j not in known and entry], dtype=np.int64)
        factor = np.array([entries[j] for j in other.tolist()])
        ends = np.array([factor * box.lower[other], factor * box.upper[other]])
        least, most = float(ends.min(0).sum()), float(ends.max(0).sum())
        room += NOISE * (other.size + 2) * float(np.abs(ends).sum(where=np.isfinite(ends)))
        low, high = mip.row_lower[number] - constant - most, mip.row_upper[number] - constant - least
        return _MoveRow(weights, low - room - NOISE * abs(low), high + room + NOISE * abs(high))


def _entries(A: sp.csr_array, i: int) -> Entries:
    columns, values = entries_of(A, i)
    return dict(zip(columns.tolist(), values.tolist(), strict=True))
