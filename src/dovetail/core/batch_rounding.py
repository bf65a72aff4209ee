"""How far a predictor's answer for one row varies by rounding, and the tolerance that follows.

A float32 network adds up in an order that its library chooses: by the size of the batch, the number of
threads and the vector units of the processor. Each order rounds differently, so the last digits of an answer
are no property of the network. One machine can measure two differences: the row alone against the row in its
batch, and the network against its float64 copy, whose answer is nearly exact. Another machine may be as far
off in the other direction, and a few rows do not show the worst case, so the tolerance is four times what
was measured.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray, NameOf, all_finite
from dovetail.core.block import Block
from dovetail.core.description import Description
from dovetail.core.pieces import each_piece
from dovetail.core.predictor import Predictor

Copy = Callable[[FloatArray], FloatArray]
"""A float64 copy of a predictor that computes in less."""

APART = 4.0
"""This machine may err to one side and another one to the other, and what a few rows show is not the most."""
ROWS, HAIR = 16, 1e-4
"""A row by itself may happen to be rounded well: it is looked at with so many others, moved by this part."""
MOST_NEAR = 256
"""Rows that are looked at so: what as many show of a network's rounding, more of them hardly change; and
every row is compared with its float64 copy besides."""
DOUBLE = 2.0**-49
"""Eight roundings of float64, relative: what is allowed a predictor that computes in it, without a look."""
MANY = 4096
"""Rows beyond which only so many (`MOST_NEAR`) are evaluated one by one: the first few thousand, which are
what there is time for, would show no more."""
SECONDS = 0.25
"""The longest that rows are evaluated one by one; what was seen of these then stands for the others."""
FEW = 4096
"""Rows that are put together for one call of a float64 copy; to copy more of them would take longer."""
ALONE = "between a sample in its batch and alone"
COPY_ROWS, DEVICE_COPY_ROWS = 1 << 15, 1 << 18
"""Rows that a copy is asked about at once: what is made on the way stays near a core, or busies a GPU without
filling its memory."""


def double_copy(predictor: Predictor, description: Description) -> Copy | None:
    """A float64 copy of a predictor that computes in less, as a function of numpy arrays.

    It is on the GPU where the predictor is on one.
    """
    if description.is_float64 or not description.has_float64_copy:
        return None
    import torch

    on_gpu = description.device.startswith("cuda")
    device = description.device if on_gpu else "cpu"
    forward = predictor.snapshot(device)

    def evaluate(X: FloatArray) -> FloatArray:
        size = DEVICE_COPY_ROWS if on_gpu else COPY_ROWS
        with warnings.catch_warnings():  # of rows that must not be written to: copies leave them alone
            warnings.simplefilter("ignore", UserWarning)
            rows = torch.from_numpy(np.ascontiguousarray(X))
        parts = [rows[first : first + size] for first in range(0, max(1, len(rows)), size)]
        with torch.no_grad():
            return np.concatenate([forward(some.to(device)).cpu().numpy() for some in parts])

    return evaluate


def alone(block: Block, inputs: FloatArray, which: BoolArray, values: FloatArray) -> FloatArray:
    """(n, q) what the predictor says of each of these rows by itself; NaN where nobody asked, or in time.

    Of many rows some are asked, those of classes first that its `values` in a batch decide least.
    """
    answers = np.full(block.outputs.shape, np.nan)
    rows = np.flatnonzero(which) if np.count_nonzero(which) <= MANY else _some_of_many(block, which, values)
    end = perf_counter() + SECONDS
    for i in rows:
        answers[i] = block.predictor.predict(inputs[i : i + 1].copy())[0]
        if perf_counter() > end:
            break
    return answers


def _some_of_many(block: Block, which: BoolArray, values: FloatArray) -> IntArray:
    """`MOST_NEAR` of these rows: the least decided ones, or some at equal distances."""
    if not block.classifies:
        rows = np.flatnonzero(which)
        return np.asarray(rows[_sampled_rows(len(rows))])

    def least(some: slice) -> tuple[FloatArray, IntArray]:
        lead = np.where(which[some], block.lead(values[some]), np.inf)
        few = np.argsort(lead)[:MOST_NEAR] if len(lead) <= MOST_NEAR else np.argpartition(lead, MOST_NEAR)
        return lead[few[:MOST_NEAR]], few[:MOST_NEAR] + some.start

    lead, rows = (np.concatenate(part) for part in zip(*each_piece(least, len(which), 1), strict=True))
    return np.asarray(rows[np.argsort(lead)[:MOST_NEAR]])


def batch_rounding(
    block: Block, values: FloatArray, near: FloatArray, others: list[FloatArray]
) -> FloatArray:
    """(n, q) how far each of `values` may be from what the same row gives elsewhere.

    `near` is what was seen `nearby`; `others` are answers for the same rows by other routes, NaN where there
    is none.
    """
    if block.description.is_float64:
        return np.broadcast_to(DOUBLE * np.maximum(1.0, np.max(np.abs(values), axis=0)), values.shape)
    found, shape = np.empty(values.shape), (values.shape[0], values.shape[1])

    def look(some: slice) -> tuple[FloatArray, FloatArray]:
        apart = near[some]
        for other in others:
            apart = np.fmax(apart, np.abs(other[some] - values[some]))
        found[some] = apart
        return apart.max(axis=0), np.abs(values[some]).max(axis=0)

    seen = each_piece(look, *shape)
    most, size = (np.max([piece[k] for piece in seen], axis=0) for k in range(2))
    share = most / np.where(size > 0.0, size, 1.0)

    def widen(some: slice) -> None:
        np.maximum(found[some], share * np.abs(values[some]), out=found[some])
        found[some] *= APART

    each_piece(widen, *shape)
    return found


def rows_nearby(block: Block, inputs: FloatArray) -> FloatArray:
    """Rows a hair away from some of the inputs: those that `nearby` looks at."""
    inputs = inputs[:0] if block.description.is_float64 else inputs[_sampled_rows(len(inputs))]
    n, d = inputs.shape
    times = -(-ROWS // max(1, n))
    moves = HAIR * np.linspace(-1.0, 1.0, times * d).reshape(times, 1, d)
    return np.asarray((inputs + moves * np.maximum(1.0, np.abs(inputs))).reshape(-1, d))


def nearby(block: Block, rows: FloatArray, doubles: FloatArray | None) -> FloatArray:
    """(n, q) the most that rows a hair away differ from their float64 copies; 0 for those not looked at.

    A network that cannot be copied shows its rounding only by the size of its batches.
    """
    seen = np.zeros(block.outputs.shape)
    if not len(rows):
        return seen
    predict, some = block.predictor.predict, _sampled_rows(len(seen))
    other = np.concatenate([predict(rows[:1]), predict(rows[1:])]) if doubles is None else doubles
    apart = np.nan_to_num(np.abs(predict(rows) - other), nan=0.0, posinf=0.0)
    seen[some] = apart.reshape(-1, len(some), apart.shape[1]).max(axis=0)
    return seen


def _sampled_rows(n: int) -> IntArray:
    """The rows that are sampled: at most `MOST_NEAR`, at equal distances."""
    return np.linspace(0, n - 1, min(n, MOST_NEAR)).astype(np.int64)


class BlockAnswers:
    """What one block's predictor says of a point, by all routes that are open here.

    In one batch, as its owner deploys it; some rows alone; in float64; a hair away. Many samples are looked
    at piece by piece.
    """

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
            self._double, doubles = _copy_of_both(copy, inputs, hair)
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
        return self._values.shape[0], self._values.shape[1]

    @cached_property
    def _unclear(self) -> BoolArray:
        """(n,) whether rounding may change the class."""
        found = np.zeros(self.block.samples, dtype=bool)

        def look(some: slice) -> None:
            rounding = self._values_compared * self.batch_rounding[some].max(axis=1)
            found[some] = self.block.lead(self._values[some]) <= rounding

        if self.block.classifies:
            each_piece(look, *self._shape)
        return found

    @property
    def _values_compared(self) -> int:
        """Roundings that a class depends on: of one value at a threshold, or of two values."""
        return 1 if self.block.outputs.shape[1] == 1 else 2

    @property
    def safe_lead(self) -> float:
        """The lead from which on no class turns."""
        return self._values_compared * float(np.max(self.batch_rounding)) if self.block.classifies else 0.0

    @property
    def prediction(self) -> Worst:
        """How far the output columns are from what was said, beyond its own rounding."""
        block = self.block
        if not self._finite:
            return Worst(float("inf"), f"{block.name}: the predictor does not give a finite number")
        faults = [worst_in_pieces(self._apart, self._shape, self._named)]
        for other, words in ((self._double, "between its own dtype and float64"), (self._alone, ALONE)):
            if block.classifies and other is not None and self._changes_class(other):
                faults.append(Worst(1.0, f"{block.name}: class differs {words}"))
        return largest(faults)

    def _apart(self, some: slice) -> FloatArray:
        """Relative distance of the output columns from the prediction."""
        truth = self.block.decode(self._values[some])
        apart = np.abs(self.block.outputs_of(self._x)[some] - truth)
        if not self.block.classifies:
            apart = np.maximum(apart - self.batch_rounding[some], 0.0)
        return np.asarray(apart / np.maximum(1.0, np.abs(truth)))

    def _named(self, place: int) -> str:
        sample, output = divmod(place, self._shape[1])
        return f"{self.block.name}, sample {sample}, output {output}"

    def _changes_class(self, other: FloatArray) -> bool:
        """Whether another route gives some sample another class; NaN means not asked."""

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


def _copy_of_both(copy: Copy, one: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    """In float64 one call for both gives the same as two, and takes no longer."""
    if len(one) > FEW:
        return copy(one), copy(other)
    answers = copy(np.concatenate([one, other]))
    return answers[: len(one)], answers[len(one) :]


@dataclass(frozen=True)
class Worst:
    """The largest violation of one kind, and the item that has it ("" when there is none)."""

    amount: float = 0.0
    name: str = ""

    def __str__(self) -> str:
        return f"{self.amount:.1e}" + (f" ({self.name})" if self.name else "")


NOTHING = Worst()
"""No violation at all."""


def largest(kinds: Sequence[Worst]) -> Worst:
    """The worst of all, or the first that could not be measured."""
    unknown = [kind for kind in kinds if np.isnan(kind.amount)]
    return unknown[0] if unknown else max(kinds, key=lambda kind: kind.amount, default=Worst())


def worst_of(amounts: FloatArray, name_of: NameOf) -> Worst:
    """The largest amount, by the name of its place; what is no number is the worst there is."""
    return worst_in_pieces(lambda some: amounts[some], (len(amounts), 1), name_of)


def worst_in_pieces(amounts: Callable[[slice], FloatArray], shape: tuple[int, int], name_of: NameOf) -> Worst:
    """The same of (blocks, width) amounts that are made piece by piece; places are counted through."""

    def most(some: slice) -> tuple[float, int]:
        found = np.asarray(amounts(some)).ravel()
        at = int(np.argmax(found))
        # numpy's largest is no number, where there is one
        return (np.inf if np.isnan(found[at]) else float(found[at])), some.start * shape[1] + at

    if shape[0] * shape[1] == 0:
        return Worst()
    amount, place = max(each_piece(most, *shape), key=lambda one: one[0])
    return Worst(amount, name_of(place)) if amount > 0.0 else Worst()
