"""A block: columns tied to other columns through a predictor, for n samples at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.description import Description
from dovetail.core.pieces import pieces
from dovetail.core.predictor import OnDevice, Predictor
from dovetail.core.training_range import TrainingRange


@dataclass(frozen=True, eq=False)
class Block:
    """n samples of one predictor: columns ``outputs[i]`` are what it says of columns ``inputs[i]``.

    A regression block's outputs are the predictor's values. A classification block's
    single output is 1 where the value is >= `threshold` and 0 elsewhere; k outputs
    are the one-hot of the largest of k values (the first of equal ones).

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
    """What the predictor was when it was tied, or when the solve began."""
    inputs: IntArray
    outputs: IntArray
    classifies: bool
    threshold: float
    epsilon: float
    training_range: TrainingRange | None = None
    """What the predictor was trained on, if its owner said."""

    @property
    def in_words(self) -> str:
        """What it is, in one line."""
        kind = "class" if self.classifies else "regression"
        into, out = self.inputs.shape[1], self.outputs.shape[1]
        samples = f"{self.samples} sample{'s' if self.samples > 1 else ''}"
        return f"{self.description.name} ({kind}), {samples} of {into} -> {out}"

    @property
    def samples(self) -> int:
        """Number of samples evaluated as one batch."""
        return int(self.inputs.shape[0])

    def read(self, x: FloatArray) -> FloatArray:
        """(n, d) its inputs at a point, for its predictor, which may write into what it is given: an array of
        its own, unless it is known to leave that alone."""
        view = self.view(x)
        return view.copy() if self._one_piece and not isinstance(self.predictor, OnDevice) else view

    def view(self, x: FloatArray) -> FloatArray:
        """(n, d) its inputs at a point, to be looked at.

        Families of a template are one piece of the point, and need not be picked one by one.
        """
        if not self._one_piece:
            return np.asarray(x[self.inputs])
        first = int(self.inputs.flat[0])
        return x[first : first + self.inputs.size].reshape(self.inputs.shape)

    @cached_property
    def _one_piece(self) -> bool:
        """Whether its inputs are consecutive columns, in the order of its samples."""
        flat = self.inputs.ravel()
        if not flat.size or flat[-1] - flat[0] != flat.size - 1:
            return False
        return all(
            np.array_equal(flat[some], np.arange(some.start, some.stop) + flat[0])
            for some in pieces(flat.size, 1)
        )

    def decode(self, values: FloatArray) -> FloatArray:
        """What the output columns must be, given the predictor's values."""
        if not self.classifies:
            return values
        return classes_of(values, self.threshold)

    def lead(self, values: FloatArray) -> FloatArray:
        """(n,) by how much a class is decided: distance from the threshold, or of the two largest values."""
        if self.outputs.shape[1] == 1:
            return np.asarray(np.abs(values[:, 0] - self.threshold))
        first_two = np.sort(values, axis=1)[:, -2:]
        return np.asarray(first_two[:, 1] - first_two[:, 0])


def classes_of(values: FloatArray, threshold: float = 0.0) -> FloatArray:
    """What decides a class: 1 where a single value reaches the threshold, else the one-hot of the largest.

    The first of equal ones counts. The threshold of logits, and of values relative to theirs, is 0.
    """
    if values.shape[1] == 1:
        return (values >= threshold).astype(np.float64)
    one_hot = np.zeros(values.shape)
    one_hot[np.arange(len(values)), np.argmax(values, axis=1)] = 1.0
    return one_hot
