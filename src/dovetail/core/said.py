"""What one block's predictor says of a point, by all routes that are open here.

In one batch, as its owner deploys it; some rows alone; in float64; a hair away. Numbers of many samples are
looked at piece by piece.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray, all_finite
from dovetail.core.batch_rounding import Copy, alone, batch_rounding, nearby, rows_nearby
from dovetail.core.block import Block
from dovetail.core.pieces import each_piece
from dovetail.core.worst import Worst, largest, worst_in_pieces

FEW = 4096
"""Rows that are put together for one call of a float64 copy; to copy more of them would take longer."""
ALONE = "between a sample in its batch and alone"


class Said:
    """See above."""

    def __init__(
        self, block: Block, copy: Copy | None, x: FloatArray, answer: FloatArray | None, *, one_by_one: bool
    ) -> None:
        self.block, self._x = block, x
        self._evaluate = copy if copy is not None else block.predictor.predict
        self._values = block.predictor.predict(block.read(x)) if answer is None else answer
        inputs = block.view(x)
        self._finite = all_finite(self._values)
        self.batch_rounding: FloatArray = np.zeros(self._values.shape)
        self._double: FloatArray | None = None
        self._alone: FloatArray | None = None
        if not self._finite:
            return
        hair, doubles = rows_nearby(block, inputs), None
        if copy is not None:
            self._double, doubles = _both(copy, inputs, hair)
        near = nearby(block, hair, doubles)
        seen = [] if self._double is None else [self._double]
        self.batch_rounding = batch_rounding(block, self._values, near, seen)
        which = self._unclear | (one_by_one and not block.description.is_float64)
        if np.any(which):
            self._alone = alone(block, inputs, which, self._values)
            self.batch_rounding = batch_rounding(block, self._values, near, [*seen, self._alone])
            self.__dict__.pop("_unclear", None)

    def moved_by(self, changes: FloatArray, samples: IntArray) -> FloatArray:
        """(k, q) what changes of these samples' inputs make of their values, input by input."""
        inputs = self.block.inputs[samples]
        u, evaluate = self._x[inputs], self._evaluate
        moved, before = np.zeros((len(u), self.block.outputs.shape[1])), evaluate(u)
        for place in np.flatnonzero(np.any(changes[inputs] > 0.0, axis=0)):
            step = np.zeros(u.shape)
            step[:, place] = changes[inputs[:, place]]
            up, down = np.abs(evaluate(u + step) - before), np.abs(evaluate(u - step) - before)
            moved += np.nan_to_num(np.maximum(up, down), posinf=0.0)
        return moved

    @property
    def _shape(self) -> tuple[int, int]:
        """(samples, outputs)."""
        return self._values.shape[0], self._values.shape[1]

    @cached_property
    def _unclear(self) -> BoolArray:
        """(n,) whose class rounding may turn."""
        found = np.zeros(self.block.samples, dtype=bool)

        def look(some: slice) -> None:
            rounding = self._sides * self.batch_rounding[some].max(axis=1)
            found[some] = self.block.lead(self._values[some]) <= rounding

        if self.block.classifies:
            each_piece(look, *self._shape)
        return found

    @property
    def _sides(self) -> int:
        """A value against a threshold, or two against each other."""
        return 1 if self.block.outputs.shape[1] == 1 else 2

    @property
    def safe_lead(self) -> float:
        """The lead from which on no class turns."""
        return self._sides * float(np.max(self.batch_rounding)) if self.block.classifies else 0.0

    @property
    def prediction(self) -> Worst:
        """How far the output columns are from what was said, beyond its own rounding."""
        block = self.block
        if not self._finite:
            return Worst(float("inf"), f"{block.name}: the predictor does not give a finite number")
        faults = [worst_in_pieces(self._apart, self._shape, self._named)]
        for other, words in ((self._double, "between its own dtype and float64"), (self._alone, ALONE)):
            if block.classifies and other is not None and self._turns(other):
                faults.append(Worst(1.0, f"{block.name}: class differs {words}"))
        return largest(faults)

    def _apart(self, some: slice) -> FloatArray:
        """Output columns from what was said, relative."""
        truth = self.block.decode(self._values[some])
        apart = np.abs(self.block.outputs_of(self._x)[some] - truth)
        if not self.block.classifies:
            apart = np.maximum(apart - self.batch_rounding[some], 0.0)
        return np.asarray(apart / np.maximum(1.0, np.abs(truth)))

    def _named(self, place: int) -> str:
        sample, output = divmod(place, self._shape[1])
        return f"{self.block.name}, sample {sample}, output {output}"

    def _turns(self, other: FloatArray) -> bool:
        """Whether some class is another by another route; NaN where that was not asked."""

        def turned(some: slice) -> bool:
            mine, theirs = self._values[some], other[some]
            asked = ~np.isnan(theirs).any(axis=1)
            if not asked.all():
                mine, theirs = mine[asked], theirs[asked]
            return not np.array_equal(self.block.decode(mine), self.block.decode(theirs))

        return any(each_piece(turned, *self._shape))

    @property
    def precision(self) -> Worst:
        """How far it is from its float64 copy."""
        block, double = self.block, self._double
        if not (self._finite and not block.description.is_float64):
            return Worst()
        if double is None:
            return Worst(float("nan"), f"{block.name}: no float64 copy can be made")

        def apart(some: slice) -> FloatArray:
            return np.asarray(
                np.abs(self._values[some] - double[some]) / np.maximum(1.0, np.abs(double[some]))
            )

        return worst_in_pieces(apart, self._shape, self._named)

    @property
    def turning(self) -> Worst:
        """A class that was the same by all routes here, and may yet be another elsewhere."""
        if self.block.description.is_float64 or not np.any(self._unclear):
            return Worst()
        i = int(np.flatnonzero(self._unclear)[0])
        return Worst(1.0, f"{self.block.name}, sample {i}: its class")


def _both(copy: Copy, one: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What a copy says of rows: in float64 one call says the same as two, and takes no longer."""
    if len(one) > FEW:
        return copy(one), copy(other)
    answers = copy(np.concatenate([one, other]))
    return answers[: len(one)], answers[len(one) :]
