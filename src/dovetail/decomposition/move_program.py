"""The program of one block of a template in terms of its moves, after all definitions are substituted.

A block's solution is given by its *moves* m, one per coordinate, between `lower` and `upper`; 0 is the
least active solution. A coordinate is a variable of the linear part, or a pair of variables (up, down)
that occur with opposite signs in a single private constraint. A positive move is the first variable of
the pair, a negative move the second. Variables that a private equation defines by such coordinates (x = w
+ up - down), or also by outputs (spend = price times sold), are substituted. So the cost of a block, and
its use of the coupling constraints, is linear in its *parts*

    [max(m, 0), max(-m, 0), y, 1]

where y are its outputs. Other private constraints, and bounds of outputs and of defined variables, are
*conditions* on_moves m + on_outputs y >= least.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.structure.components import CouplingSides

NONE = -1
"""Stands for a missing left column of a coordinate."""
FEW_ROWS = 64
"""Number of rows examined before all are."""


@dataclass(frozen=True, eq=False)
class NetworkReading:
    """The inputs of one network of a block, u = at_rest + by_moves m, and its outputs."""

    block: int
    at_rest: FloatArray
    """(N, d)."""
    by_moves: FloatArray
    """(d, k)."""
    outputs: IntArray
    """Places in y."""
    size: FloatArray
    """(d,) the absolute terms in `at_rest`, the largest of all blocks."""


@dataclass(frozen=True, eq=False)
class PartGain:
    """The change of a local column per unit of a part: (1,) for all blocks, or (N,)."""

    column: int
    part: int
    amount: FloatArray


@dataclass(frozen=True, eq=False)
class MoveProgram:
    """The block program: N blocks, k coordinates, q outputs, 2 k + q + 1 parts."""

    lower: FloatArray
    """(N, k) limits of moves."""
    upper: FloatArray
    whole: BoolArray
    """(k,) integer coordinates."""
    right: IntArray
    """(k,) the local column of a positive move."""
    left: IntArray
    """(k,) the local column of a negative move, NONE if it is the same."""
    output_columns: IntArray
    """(q,) local."""
    cost: FloatArray
    """(N, 2 k + q + 1) costs of parts."""
    use: FloatArray
    """(N, m) use by parts: entry e is the use of side `use_side[e]` by one unit of part `use_part[e]`."""
    use_side: IntArray
    use_part: IntArray
    sides: CouplingSides
    on_moves: FloatArray
    """(N, C, k) of the conditions on_moves m + on_outputs y >= least."""
    on_outputs: FloatArray
    """(N, C, q)."""
    least: FloatArray
    """(N, C)."""
    networks: tuple[NetworkReading, ...]
    rest: tuple[FloatArray, ...]
    """Values of the local columns for moves and outputs 0: (1,) for all blocks, or (N,)."""
    gains: tuple[PartGain, ...]
    cost_size: FloatArray
    """(parts,) the absolute terms in a cost, the largest of all blocks: rounding is relative to them."""
    use_size: FloatArray
    """(m,) the same for `use`."""
    scale: FloatArray
    """(k,) the typical size of a move, over all blocks of the template."""

    def __getstate__(self) -> dict[str, Any]:
        """Pickled broadcast arrays would have their full size."""
        return {name: RepeatedArray.of(value) for name, value in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            sent = np.broadcast_to(value.row, value.shape) if isinstance(value, RepeatedArray) else value
            object.__setattr__(self, name, sent)

    @property
    def count(self) -> int:
        """Number of blocks."""
        return len(self.lower)

    @property
    def coordinates(self) -> int:
        """Number of coordinates."""
        return int(self.lower.shape[1])

    def rounding(self, prices: FloatArray) -> FloatArray:
        """(parts,) the absolute terms of a cost at prices, the largest of all blocks."""
        size = self.cost_size.copy()
        np.add.at(size, self.use_part, self.use_size * prices[self.use_side])
        return size

    def moves_of(self, columns: FloatArray) -> FloatArray:
        """(N, S, k) moves of points with (N, S, c) local columns."""
        above = columns - np.stack(np.broadcast_arrays(*self.rest), axis=-1)[:, None]
        below = np.where(self.left == NONE, 0.0, above[:, :, self.left])
        return np.asarray(above[:, :, self.right] - below)

    def part(self, first: int, last: int) -> MoveProgram:
        """The program of the blocks from `first` to `last` (exclusive)."""
        some = slice(first, last)
        by_block = ("lower", "upper", "cost", "use", "on_moves", "on_outputs", "least")
        return replace(
            self,
            **{name: getattr(self, name)[some] for name in by_block},
            networks=tuple(replace(reading, at_rest=reading.at_rest[some]) for reading in self.networks),
            rest=tuple(_some(column, some) for column in self.rest),
            gains=tuple(replace(gain, amount=_some(gain.amount, some)) for gain in self.gains),
        )


class RepeatedArray(NamedTuple):
    """An array of equal rows for transport: one row, and the shape."""

    row: FloatArray
    shape: tuple[int, ...]

    @classmethod
    def of(cls, value: Any) -> Any:
        """Replaces such an array; anything else is unchanged."""
        if not isinstance(value, np.ndarray) or not value.ndim or len(value) < 2 or value.strides[0]:
            return value
        return cls(value[:1], value.shape)


def _some(numbers: FloatArray, which: slice) -> FloatArray:
    """The rows of some blocks, if they differ."""
    return numbers if len(numbers) == 1 else numbers[which]


def one_row(array: FloatArray) -> FloatArray:
    """The first row if all rows are equal by their stride."""
    if len(array) < 2:
        return array
    if array.strides[0] == 0:
        return array[:1]
    # rows that differ mostly differ at the beginning: not all need to be compared
    few = array[: FEW_ROWS + 1]
    return array[:1] if np.all(few == few[0]) and np.all(array == array[0]) else array
