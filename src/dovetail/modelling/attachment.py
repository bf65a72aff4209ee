"""One predictor attached to a model, as it is kept between solves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.foreign import Places
from dovetail.core.predictor import Predictor
from dovetail.core.problem import OutputType, Problem


@dataclass(eq=False)
class Attachment:
    """One call of `add_predictor_constr`."""

    name: str
    predictor: Predictor
    inputs: Any
    outputs: Any
    """Containers as they were passed: a number that is changed in one later on is seen."""
    output_type: OutputType
    threshold: float | None
    epsilon: float
    data: Any
    categories: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    """Of features that hold names, the names; a name among the inputs stands for its place there."""
    block: Block | None = None
    """As it was accepted, over columns of that moment."""
    places: tuple[Places, Places] | None = None
    """Of a `dovetail.Problem` only, whose columns stay where they are: where inputs and outputs are."""
    values: tuple[FloatArray, FloatArray] | None = None
    """Inputs (n_samples, n_features) and outputs (n_samples, n_outputs) at the point of the last solve."""
    trouble: str = "there is no solution yet; call dovetail.solve(model) first"
    """Why there are no values."""

    def add_to(self, problem: Problem, inputs: IntArray, outputs: IntArray) -> None:
        """Make it a block of `problem` over these columns, or raise what is wrong with it."""
        taken = {block.name for block in problem.blocks}
        self.block = problem.add_predictor(
            self.predictor,
            inputs,
            outputs,
            output_type=self.output_type,
            threshold=self.threshold,
            epsilon=self.epsilon,
            name=self.name if self.name not in taken else f"{self.name}#{len(taken)}",
            data=self.data,
        )

    def error(self, inputs: FloatArray, outputs: FloatArray) -> FloatArray:
        """(n_samples, n_outputs) |what the predictor says of the inputs - the outputs|."""
        assert self.block is not None
        return np.asarray(np.abs(self.block.decode(self.block.predictor.predict(inputs)) - outputs))
