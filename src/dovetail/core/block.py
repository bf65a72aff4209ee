"""A block: variables connected with other variables through a predictor, for n samples at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.description import Description
from dovetail.core.errors import PredictorError
from dovetail.core.names import in_short
from dovetail.core.pieces import each_piece
from dovetail.core.predictor import OnDevice, Predictor


@dataclass(frozen=True, eq=False, repr=False)
class Block:
    """n samples of one predictor: variables ``outputs[i]`` equal the predictor's answer to ``inputs[i]``.

    Outputs of a regression are the predictor's values. In a classification a single output is 1 if the value
    is at least `threshold` and 0 otherwise; k outputs are the one-hot of the largest of k values (the first
    of equal ones).

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[0.0] * 4, upper=[5.0, 5.0, 1.0, 1.0]))
    >>> block = problem.add_predictor(
    ...     lambda X: X - 2.5, inputs=[[0], [1]], outputs=[[2], [3]], output_type="classification"
    ... )
    >>> block.name, block.samples, block.threshold
    ('block0', 2, 0.0)
    """

    name: str
    predictor: Predictor
    description: Description
    """The predictor's description, when it was added or when the solve began."""
    inputs: IntArray
    outputs: IntArray
    classifies: bool
    threshold: float
    epsilon: float
    training_range: TrainingRange | None = None
    """The range of the training inputs, if given."""

    def __repr__(self) -> str:
        return f"<Block {in_short(self.name)}: {self.in_words}>"

    @property
    def in_words(self) -> str:
        """One line that describes the block."""
        kind = "class" if self.classifies else "regression"
        into, out = self.inputs.shape[1], self.outputs.shape[1]
        samples = f"{self.samples} sample{'s' if self.samples > 1 else ''}"
        return f"{self.description.name} ({kind}), {samples} of {into} -> {out}"

    @property
    def samples(self) -> int:
        """Number of samples evaluated as one batch."""
        return int(self.inputs.shape[0])

    def read(self, x: FloatArray) -> FloatArray:
        """(n, d) the inputs at a point. The predictor may write into this array; it is a copy unless the
        predictor is known not to write."""
        view = self.view(x)
        return view.copy() if self._one_piece and not isinstance(self.predictor, OnDevice) else view

    def view(self, x: FloatArray) -> FloatArray:
        """(n, d) the inputs at a point, not to be written to. Families of a template are one slice of the
        point."""
        return np.asarray(x[self._input_places]).reshape(self.inputs.shape)

    def outputs_of(self, x: FloatArray) -> FloatArray:
        """(n, q) the outputs at a point, not to be written to."""
        return np.asarray(x[self._output_places]).reshape(self.outputs.shape)

    def write(self, x: FloatArray, outputs: FloatArray) -> None:
        """Write (n, q) outputs into a point."""
        places = self._output_places
        x[places] = outputs.ravel() if isinstance(places, slice) else outputs

    @property
    def _one_piece(self) -> bool:
        return isinstance(self._input_places, slice)

    @cached_property
    def _input_places(self) -> slice | IntArray:
        return _as_slice(self.inputs)

    @cached_property
    def _output_places(self) -> slice | IntArray:
        return _as_slice(self.outputs)

    def decode(self, values: FloatArray) -> FloatArray:
        """The values that the output columns must have, given the predictor's values."""
        if not self.classifies:
            return values
        return classes_of(values, self.threshold)

    def lead(self, values: FloatArray) -> FloatArray:
        """(n,) the margin of each class: the distance of the value from the threshold, or between the two
        largest values."""
        if self.outputs.shape[1] == 1:
            return np.asarray(np.abs(values[:, 0] - self.threshold))
        first_two = np.sort(values, axis=1)[:, -2:]
        return np.asarray(first_two[:, 1] - first_two[:, 0])


def _as_slice(columns: IntArray) -> slice | IntArray:
    """Consecutive columns in the order of the samples as a slice, others unchanged."""
    flat = columns.ravel()
    if not flat.size or flat[-1] - flat[0] != flat.size - 1:
        return columns
    first = int(flat[0])

    def consecutive(some: slice) -> bool:
        return np.array_equal(flat[some], np.arange(first + some.start, first + some.stop))

    return slice(first, first + flat.size) if all(each_piece(consecutive, flat.size, 1)) else columns


def classes_of(values: FloatArray, threshold: float = 0.0) -> FloatArray:
    """The classes of values: 1 if a single value reaches the threshold, otherwise the one-hot of the largest
    (the first of equal ones). The threshold of logits, and of values relative to their threshold, is 0."""
    if values.shape[1] == 1:
        return (values >= threshold).astype(np.float64)
    one_hot = np.zeros(values.shape)
    one_hot[np.arange(len(values)), np.argmax(values, axis=1)] = 1.0
    return one_hot


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The training inputs as numbers."""

    rows: FloatArray
    """(m, d); NaN for missing values."""
    names: tuple[str, ...]
    categories: frozenset[int]
    """Features whose numbers stand for categories, so that their distances mean nothing."""
    text: BoolArray
    """(d,) features that are text, whose numbers are not known."""

    @classmethod
    def of(cls, block: str, data: Any, features: int, categories: Iterable[int] = ()) -> TrainingData:
        """(m, d) training inputs, an array or a frame. A column of text in a frame has no range."""
        columns = getattr(data, "columns", None)
        text = np.zeros(features, dtype=bool)
        if hasattr(data, "isetitem") and data.shape[1] == features:  # a frame of pandas
            text = np.array([_is_text(data.iloc[:, k]) for k in range(features)])
            data = data.copy()
            for k in np.flatnonzero(text).tolist():
                data.isetitem(k, 0.0)
        try:
            table = np.atleast_2d(np.asarray(data, dtype=np.float64))
        except (TypeError, ValueError) as reason:
            raise PredictorError(
                f"{block}: data is no array of numbers ({reason}); give numbers instead, or leave data= out."
            ) from None
        if table.ndim != 2 or table.shape[1] != features or len(table) == 0:
            raise PredictorError(
                f"{block}: data has shape {table.shape}, but the predictor has {features} inputs; give the "
                f"training inputs as (n_samples, {features})."
            )
        known = np.isfinite(table)
        if not np.all(known.any(axis=0)):
            raise PredictorError(
                f"{block}: data has no finite value in column {int(np.argmin(known.any(0)))}."
            )
        names = [f"feature {k}" for k in range(features)] if columns is None else [str(c) for c in columns]
        kinds = enumerate(getattr(data, "dtypes", ()))
        named = {*categories, *np.flatnonzero(text).tolist()}
        named |= {k for k, kind in kinds if str(kind) == "category"}
        return cls(np.where(known, table, np.nan), tuple(names), frozenset(named), text)

    @property
    def complete(self) -> FloatArray:
        """(rows, d) the rows without missing values."""
        found = self.rows[np.isfinite(self.rows).all(axis=1)]
        if not len(found):
            raise PredictorError("every row of data has a missing value.")
        return found

    @property
    def range(self) -> TrainingRange:
        """The range of each feature; missing values are ignored."""
        lower = np.where(self.text, -np.inf, np.nanmin(self.rows, axis=0))
        return TrainingRange(lower, np.where(self.text, np.inf, np.nanmax(self.rows, axis=0)), self.names)


@dataclass(frozen=True, eq=False)
class TrainingRange:
    """The range of each feature in the training inputs."""

    lower: FloatArray
    upper: FloatArray
    names: tuple[str, ...]


def _is_text(column: Any) -> bool:
    """Whether a column of a frame has text."""
    return any(isinstance(entry, str) for entry in column.tolist())
