"""The rounding of a predictor's answers, and the tolerance that follows. A float32 network adds numbers in
an order that its library chooses: by batch size, number of threads and vector units. Each order rounds
differently, so the last digits of an answer depend on the batch, not on the network. One machine can
measure two differences: a row alone against the same row in a batch, and the network against its float64
copy, whose answer is nearly exact. Another machine may differ by the same amount in the other direction,
and a few rows do not show the worst case, so the tolerance is four times the measured difference."""

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
"""A float64 copy of a predictor that computes in lower precision."""

APART = 4.0
"""Factor on the measured difference: another machine may err in the other direction, and a few rows do not
show the maximum."""
ROWS, HAIR = 16, 1e-4
"""A single row may be rounded well by chance. Number of neighbouring rows that are evaluated too, and the
relative distance to them."""
MOST_NEAR = 256
"""Number of rows evaluated to measure a network's rounding; more rows hardly change the result. Every row is
also compared with the float64 copy."""
DOUBLE = 2.0**-49
"""Eight roundings of float64, relative: the tolerance of a float64 predictor, without a measurement."""
MANY = 4096
"""Above this number of rows only `MOST_NEAR` of them are evaluated one by one, because time allows only the
first few thousand."""
SECONDS = 0.25
"""Time limit for evaluating rows one by one; the others get the largest difference found."""
FEW = 4096
"""Number of rows in one call of a float64 copy; a larger copy would take longer."""
ALONE = "between a sample in its batch and alone"
COPY_ROWS, DEVICE_COPY_ROWS = 1 << 15, 1 << 18
"""Number of rows per call of a copy, on the CPU (intermediate values stay in the cache) and on a GPU (which
is kept busy within its memory)."""


def double_copy(predictor: Predictor, description: Description) -> Copy | None:
    """A float64 copy of a predictor in lower precision, as a function of numpy arrays; on the GPU if the
    predictor is there."""
    if description.is_float64 or not description.has_float64_copy:
        return None
    import torch

    on_gpu = description.device.startswith("cuda")
    device = description.device if on_gpu else "cpu"
    forward = predictor.snapshot(device)

    def evaluate(X: FloatArray) -> FloatArray:
        size = DEVICE_COPY_ROWS if on_gpu else COPY_ROWS
        with warnings.catch_warnings():  # the rows must not be written to: copies leave them unchanged
            warnings.simplefilter("ignore", UserWarning)
            rows = torch.from_numpy(np.ascontiguousarray(X))
        parts = [rows[first : first + size] for first in range(0, max(1, len(rows)), size)]
        with torch.no_grad():
            return np.concatenate([forward(some.to(device)).cpu().numpy() for some in parts])

    return evaluate


def alone(block: Block, inputs: FloatArray, which: BoolArray, values: FloatArray) -> FloatArray:
    """(n, q) answers to each row by itself; NaN for rows that were not evaluated. If there are many rows,
    only some are evaluated; rows whose `values` are nearest to another class come first."""
    answers = np.full(block.outputs.shape, np.nan)
    rows = np.flatnonzero(which) if np.count_nonzero(which) <= MANY else _some_of_many(block, which, values)
    end = perf_counter() + SECONDS
    for i in rows:
        answers[i] = block.predictor.predict(inputs[i : i + 1].copy())[0]
        if perf_counter() > end:
            break
    return answers


def _some_of_many(block: Block, which: BoolArray, values: FloatArray) -> IntArray:
    """`MOST_NEAR` of these rows: the least decided ones, or rows at equal distances in the list."""
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
    """(n, q) the largest difference of each of `values` from the predictor's answer in another batch or on
    another machine. `near` is the result of `nearby`; `others` are answers to the same rows by other
    routes, or NaN."""
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
    """Rows close to some of the inputs, for `nearby`."""
    inputs = inputs[:0] if block.description.is_float64 else inputs[_sampled_rows(len(inputs))]
    n, d = inputs.shape
    times = -(-ROWS // max(1, n))
    moves = HAIR * np.linspace(-1.0, 1.0, times * d).reshape(times, 1, d)
    return np.asarray((inputs + moves * np.maximum(1.0, np.abs(inputs))).reshape(-1, d))


def nearby(block: Block, rows: FloatArray, doubles: FloatArray | None) -> FloatArray:
    """(n, q) the largest difference between the predictor and its float64 copy on rows nearby; 0 for rows
    that were not evaluated. Without a copy, only different batch sizes show the rounding."""
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
    """The answers of one block's predictor at a point, by all available routes: in one batch, as deployed;
    some rows alone; in float64; at rows nearby. Many samples are processed piece by piece."""

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
        which = self._class_is_uncertain | (one_by_one and not block.description.is_float64)
        if np.any(which):
            self._alone = alone(block, inputs, which, self._values)
            self.batch_rounding = batch_rounding(block, self._values, near, [*seen, self._alone])
            self.__dict__.pop("_class_is_uncertain", None)

    def moved_by(self, changes: FloatArray, samples: IntArray) -> FloatArray:
        """(k, q) changes of the values if the inputs of these samples change, one input at a time."""
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
    def _class_is_uncertain(self) -> BoolArray:
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
        """Number of rounded values that decide a class: one value at a threshold, or two values."""
        return 1 if self.block.outputs.shape[1] == 1 else 2

    @property
    def safe_lead(self) -> float:
        """The lead above which rounding cannot change the class."""
        return self._values_compared * float(np.max(self.batch_rounding)) if self.block.classifies else 0.0

    @property
    def prediction(self) -> Worst:
        """Distance of the output columns from the predictor's answers, beyond its own rounding."""
        block = self.block
        if not self._finite:
            return Worst(float("inf"), f"{block.name}: the predictor does not give a finite number")
        faults = [worst_in_pieces(self._apart, self._shape, self._place_name)]
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

    def _place_name(self, place: int) -> str:
        sample, output = divmod(place, self._shape[1])
        return f"{self.block.name}, sample {sample}, output {output}"

    def _changes_class(self, other: FloatArray) -> bool:
        """Whether another route gives a sample another class; NaN means not evaluated."""

        def turned(some: slice) -> bool:
            mine, theirs = self._values[some], other[some]
            asked = ~np.isnan(theirs).any(axis=1)
            if not asked.all():
                mine, theirs = mine[asked], theirs[asked]
            return not np.array_equal(self.block.decode(mine), self.block.decode(theirs))

        return any(each_piece(turned, *self._shape))

    @property
    def precision(self) -> Worst:
        """Distance from the float64 copy."""
        block, double = self.block, self._double
        if not (self._finite and not block.description.is_float64):
            return Worst()
        if double is None:
            return Worst(float("nan"), f"{block.name}: no float64 copy can be made")

        def apart(some: slice) -> FloatArray:
            return np.asarray(
                np.abs(self._values[some] - double[some]) / np.maximum(1.0, np.abs(double[some]))
            )

        return worst_in_pieces(apart, self._shape, self._place_name)

    @property
    def turning(self) -> Worst:
        """A class that was the same in all evaluations here, but may differ on another machine."""
        if self.block.description.is_float64 or not np.any(self._class_is_uncertain):
            return Worst()
        i = int(np.flatnonzero(self._class_is_uncertain)[0])
        return Worst(1.0, f"{self.block.name}, sample {i}: its class")


def _copy_of_both(copy: Copy, one: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    """In float64 one call with both arrays gives the same values as two calls, in the same time."""
    if len(one) > FEW:
        return copy(one), copy(other)
    answers = copy(np.concatenate([one, other]))
    return answers[: len(one)], answers[len(one) :]


@dataclass(frozen=True)
class Worst:
    """The largest violation of one kind, and the name of the violated item ("" if nothing is violated)."""

    amount: float = 0.0
    name: str = ""

    def __str__(self) -> str:
        return f"{self.amount:.1e}" + (f" ({self.name})" if self.name else "")


NOTHING = Worst()
"""No violation."""


def largest(kinds: Sequence[Worst]) -> Worst:
    """The largest of several violations, or the first that could not be measured."""
    unknown = [kind for kind in kinds if np.isnan(kind.amount)]
    return unknown[0] if unknown else max(kinds, key=lambda kind: kind.amount, default=Worst())


def worst_of(amounts: FloatArray, name_of: NameOf) -> Worst:
    """The largest amount with the name of its place; NaN counts as larger than any number."""
    return worst_in_pieces(lambda some: amounts[some], (len(amounts), 1), name_of)


def worst_in_pieces(amounts: Callable[[slice], FloatArray], shape: tuple[int, int], name_of: NameOf) -> Worst:
    """The same for (blocks, width) amounts that are made piece by piece, numbered across pieces."""

    def most(some: slice) -> tuple[float, int]:
        found = np.asarray(amounts(some)).ravel()
        at = int(np.argmax(found))
        # the maximum of numpy is NaN if a value is NaN
        return (np.inf if np.isnan(found[at]) else float(found[at])), some.start * shape[1] + at

    if shape[0] * shape[1] == 0:
        return Worst()
    amount, place = max(each_piece(most, *shape), key=lambda one: one[0])
    return Worst(amount, name_of(place)) if amount > 0.0 else Worst()
