"""The integers of a block: digits, each with the levels that it can take, and all their combinations where
these are few.

A digit is a group of binaries of which at most one (or exactly one) is 1, or one integer by itself. A *mode*
is one level of every digit. Descents keep integers as they are, so that a mode is where a descent begins.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.decomposition.move_program import MoveProgram, one_row

MOST_MODES = 256
"""Largest number of combinations that are all compared; with more, one digit after the other."""
MOST_LEVELS = 16
"""Largest number of levels of an integer; a wider one moves by powers of two."""
BESIDE = 1e-6
"""Relative distance from a cut of a tree at which float32 is on the right side."""
JUMPS = np.array([-16.0, -4.0, -1.0, 0.0, 1.0, 4.0, 16.0])


@dataclass(frozen=True, eq=False)
class Digit:
    """Integer coordinates with a common list of joint values."""

    columns: IntArray
    levels: FloatArray
    """(L, columns) steps from the lowest values; from the current value if the digit `jumps`."""
    jumps: bool = False

    def at(self, moves: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
        """(n, L, k) moves with each level in turn."""
        changed = moves[:, None, :].repeat(1, len(self.levels), 1)
        begin = (moves if self.jumps else lower)[:, None, self.columns]
        steps = torch.as_tensor(self.levels, dtype=moves.dtype, device=moves.device)
        changed[:, :, self.columns] = begin + steps
        return torch.minimum(torch.maximum(changed, lower[:, None, :]), upper[:, None, :])

    def by_chance(self, moves: Tensor, lower: Tensor, upper: Tensor, chance: Tensor) -> Tensor:
        """(n, k) moves with a random level for each block, by (n,) numbers in [0, 1)."""
        levels = self.at(moves, lower, upper)
        return levels[torch.arange(len(moves), device=moves.device), (chance * levels.shape[1]).long()]


class Ladder:
    """One coordinate that trees read, with points on both sides of their cuts. A descent has no slope there,
    and between two cuts other costs are least at one of them."""

    def __init__(
        self, program: MoveProgram, column: int, rests: list[Tensor], cuts: list[list[FloatArray]]
    ) -> None:
        """`rests`: the inputs of each network at rest; `cuts`: of each of its inputs."""
        self.column, self._beside, self._cuts = column, 0.0, list[tuple[Tensor, Tensor]]()
        for reading, rest, of_inputs in zip(program.networks, rests, cuts, strict=True):
            for place in np.flatnonzero(reading.by_moves[:, column]):
                at, slope = of_inputs[place], reading.by_moves[place, column]
                beside = BESIDE * max(1.0, float(np.abs(at).max(initial=0.0))) / abs(slope)
                self._beside = max(self._beside, beside)
                self._cuts.append((torch.as_tensor(at / slope, device=rest.device), rest[:, place] / slope))
        self.cuts = sum(len(at) for at, _ in self._cuts)

    def _of(self, which: Tensor) -> Tensor:
        """(n, cuts) the moves at which blocks reach cuts, in order."""
        return torch.cat([at - rest[which][:, None] for at, rest in self._cuts], dim=1).sort(dim=1).values

    def of(self, which: Tensor, lower: Tensor, upper: Tensor) -> Rungs:
        """Both sides of the cuts of some blocks, within (n, k) limits."""
        low, high, cuts = lower[:, self.column, None], upper[:, self.column, None], self._of(which)
        sides = [(cuts - self._beside).to(low), (cuts + self._beside).to(low)]
        places = torch.cat([low, high, low.clamp(min=0.0).minimum(high), *sides], dim=1)
        return Rungs(self.column, places.clamp(low, high).sort(dim=1).values)

    def between(self, which: Tensor, moves: Tensor) -> tuple[Tensor, Tensor]:
        """(n,) how far blocks may move down and up from (n, k) moves without passing a cut."""
        here, cuts = moves[:, self.column, None], self._of(which)
        below = torch.where(cuts < here, cuts + self._beside - here, -torch.inf).amax(dim=1)
        above = torch.where(cuts >= here, cuts - self._beside - here, torch.inf).amin(dim=1)
        return below.clamp(max=0.0), above.clamp(min=0.0)


@dataclass(frozen=True, eq=False)
class Rungs:
    """A ladder for some blocks: (n, L) levels of the coordinate, in order."""

    column: int
    places: Tensor

    def at(self, moves: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
        """(n, S, k) the moves, and with the coordinate a power of four rungs higher or lower."""
        count = self.places.shape[1]
        powers = 4 ** torch.arange(max(1, (count - 1).bit_length() + 1) // 2, device=moves.device)
        here = torch.searchsorted(self.places, moves[:, self.column, None].contiguous())
        there = (here + torch.cat([-powers, powers])).clamp(0, count - 1)
        changed = moves[:, None, :].repeat(1, 1 + there.shape[1], 1)
        changed[:, 1:, self.column] = self.places.gather(1, there)
        return changed

    def by_chance(self, moves: Tensor, lower: Tensor, upper: Tensor, chance: Tensor) -> Tensor:
        """(n, k) moves with a random rung for each block, by (n,) numbers in [0, 1)."""
        changed, place = moves.clone(), (chance * self.places.shape[1]).long()
        changed[:, self.column] = self.places.gather(1, place[:, None])[:, 0]
        return changed


def ladders_of(program: MoveProgram, blocks: list[Block], rests: list[Tensor]) -> list[Ladder]:
    """Ladders of all continuous coordinates that trees read."""
    cuts = []
    for reading in program.networks:
        trees = blocks[reading.block].description.trees
        none = [np.zeros(0)] * len(reading.by_moves)
        cuts.append(none if trees is None else list(trees().cuts))
    made = [Ladder(program, int(column), rests, cuts) for column in np.flatnonzero(~program.whole)]
    return [ladder for ladder in made if ladder.cuts]


def digits_of(program: MoveProgram) -> list[Digit]:
    """The digits of all integers."""
    lower, upper = one_row(program.lower), one_row(program.upper)
    width = (upper - lower).max(axis=0, initial=0.0)
    binary = program.whole & np.all(upper - lower == 1.0, axis=0)
    digits, left = [], program.whole.copy()
    for columns, asked in _groups(program, binary):
        if np.all(left[columns]):
            left[columns] = False
            one_hot = np.eye(len(columns))
            none = np.zeros((0 if asked else 1, len(columns)))
            digits.append(Digit(columns, np.concatenate([none, one_hot])))
    for column in np.flatnonzero(left):
        if width[column] < MOST_LEVELS:
            digits.append(Digit(np.array([column]), np.arange(width[column] + 1.0)[:, None]))
        else:
            digits.append(Digit(np.array([column]), JUMPS[:, None], jumps=True))
    return digits


def _groups(program: MoveProgram, binary: BoolArray) -> list[tuple[IntArray, bool]]:
    """Groups of binaries of which at most one is 1 in every block, the largest first; whether one must be
    1."""
    on_moves, on_outputs, least = map(one_row, (program.on_moves, program.on_outputs, program.least))
    if len(on_moves) > 1 or len(on_outputs) > 1 or np.any(one_row(program.lower)[:, binary]):
        return []
    most, some = [], set[bytes]()
    for row, of_outputs, asked in zip(on_moves[0], on_outputs[0], least.T, strict=True):
        if np.any(of_outputs) or np.any(row[~binary]) or not np.isin(row, (0.0, row.min(), row.max())).all():
            continue
        if row.max() <= 0.0 and row.min() == -1.0 and np.all(asked == -1.0):
            most.append(np.flatnonzero(row))
        elif row.min() >= 0.0 and row.max() == 1.0 and np.all(asked == 1.0):
            some.add(np.flatnonzero(row).tobytes())
    most.sort(key=len, reverse=True)
    return [(columns, columns.tobytes() in some) for columns in most if len(columns) > 1]


def modes_of(program: MoveProgram, digits: list[Digit]) -> FloatArray | None:
    """(M, k) steps from the lowest values, 0 for continuous coordinates, of all combinations allowed by
    conditions on integers alone; None if there are too many."""
    count = math.prod(len(digit.levels) for digit in digits)
    if any(digit.jumps for digit in digits) or count > 4 * MOST_MODES:
        return None
    modes = np.zeros((count, program.coordinates))
    for number, chosen in enumerate(itertools.product(*(digit.levels for digit in digits))):
        for digit, level in zip(digits, chosen, strict=True):
            modes[number, digit.columns] = level
    modes = modes[_allowed(program, modes)]
    return modes if 0 < len(modes) <= MOST_MODES else None


def _allowed(program: MoveProgram, modes: FloatArray) -> BoolArray:
    """(M,) whether a block can have a mode by the conditions on integers alone."""
    lower, on_moves, on_outputs = map(one_row, (program.lower, program.on_moves, program.on_outputs))
    allowed = np.ones(len(modes), dtype=bool)
    if len(on_moves) > 1 or len(on_outputs) > 1 or len(lower) > 1:
        return allowed
    least = one_row(program.least).min(axis=0)
    for row, of_outputs, asked in zip(on_moves[0], on_outputs[0], least, strict=True):
        if not np.any(of_outputs) and not np.any(row[~program.whole]):
            start = np.where(program.whole, lower[0], 0.0)
            allowed &= (modes + start) @ row >= asked - 1e-9 * (1.0 + abs(asked))
    return allowed
