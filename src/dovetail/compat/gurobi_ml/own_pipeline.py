"""Pipelines with steps that somebody registered a function for: each step by its own function, in a chain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TextIO

import numpy as np

from dovetail.core.arrays import FloatArray


class OwnPipelineConstr:
    """What the functions of the steps gave back, one after the other.

    What is verified is each of them; `get_error` compares with the pipeline itself.
    """

    def __init__(
        self,
        gp_model: Any,
        pipeline: Any,
        input_vars: Any,
        output_vars: Any,
        functions: tuple[Callable[..., Any], Callable[..., Any]],
        **options: Any,
    ) -> None:
        self.gp_model, self.predictor = gp_model, pipeline
        self._steps: list[Any] = []
        *before, last = [step for _, step in pipeline.steps if step not in (None, "passthrough")]
        add_transformer, add = functions
        at = input_vars
        try:
            for step in before:
                self._steps.append(add_transformer(gp_model, step, at))
                at = self._steps[-1].output
            self._steps.append(add(gp_model, last, at, output_vars, **options))
        except Exception:
            self.remove()
            raise

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, place: int) -> Any:
        """What the function of a step gave back."""
        return self._steps[place]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._steps)

    @property
    def input(self) -> Any:
        """(n_samples, n_features) variables."""
        return self._steps[0].input

    @property
    def output(self) -> Any:
        """(n_samples, n_outputs) variables."""
        return self._steps[-1].output

    @property
    def input_values(self) -> Any:
        """Values of the inputs, at the point of the model's last solve."""
        return self._steps[0].input_values

    @property
    def output_values(self) -> Any:
        """The same of the outputs."""
        return self._steps[-1].output_values

    def get_error(self, eps: float | None = None) -> FloatArray:
        """(n_samples, n_outputs) |what the pipeline says of the inputs - the outputs|."""
        values = np.asarray(self.output_values, dtype=np.float64)
        said = np.asarray(self.predictor.predict(self.input_values), dtype=np.float64)
        return np.asarray(np.abs(said.reshape(values.shape) - values))

    def print_stats(self, abbrev: bool = False, file: TextIO | None = None) -> None:
        """Those of all steps."""
        for step in self._steps:
            step.print_stats(file=file)

    def remove(self) -> None:
        """Take all steps out again, the last one first."""
        while self._steps:
            self._steps.pop().remove()
