"""What gurobi-machinelearning's functions give back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TextIO

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.modelling.predictor_constr import PredictorConstr


class GurobiPredictorConstr(PredictorConstr):
    """A `PredictorConstr` with the peer's other attributes; of rows and neurons there are none to list."""

    @property
    def gp_model(self) -> Any:
        """The model."""
        return self._model

    @property
    def vars(self) -> list[Any]:
        """Variables that were added to the model and are in it: the outputs, where none were passed."""
        kept = self._created is not None and self.is_attached
        return [*self._foreign.unpack(self._created).flat] if kept else []

    @property
    def constrs(self) -> list[Any]:
        """Rows that were added to the model: none, and so are `qconstrs`, `genconstrs` and `sos`."""
        return []

    qconstrs = genconstrs = sos = constrs

    def print_stats(self, file: TextIO | None = None, *, abbrev: bool = False) -> None:
        """What is attached, in a few lines; in one with `abbrev`."""
        if abbrev:
            print(repr(self), file=file)
        else:
            super().print_stats(file)


class PipelineConstr(GurobiPredictorConstr):
    """A pipeline, and its steps one by one."""

    def __len__(self) -> int:
        return len(self.predictor)

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, place: int) -> PipelineStep:
        """A step by its place."""
        step = range(len(self))[place]
        kind = type(self.predictor[step]).__name__
        alike = {"Ridge": "LinearRegression", "Lasso": "LinearRegression", "PLSCanonical": "PLSRegression"}
        made = type(f"{alike.get(kind, kind)}Constr", (PipelineStep,), {"__doc__": PipelineStep.__doc__})
        found: PipelineStep = made(self, step)
        return found

    def __iter__(self) -> Iterator[PipelineStep]:
        return (self[place] for place in range(len(self)))


class PipelineStep:
    """One step of a pipeline: what goes in and what comes out, at the point of the model's last solve."""

    def __init__(self, whole: PipelineConstr, place: int) -> None:
        self._whole, self._place = whole, place
        self.predictor = whole.predictor[place]

    @property
    def input_values(self) -> Any:
        """What the steps before it make of the pipeline's inputs."""
        values = self._whole.input_values
        return self._whole.predictor[: self._place].transform(values) if self._place else values

    @property
    def output_values(self) -> Any:
        """What it makes of that; the last step's is the pipeline's."""
        return self._whole.output_values if self._is_last else self.predictor.transform(self.input_values)

    def get_error(self, eps: float | None = None) -> FloatArray:
        """The pipeline's own for the last step; 0 before it, where no variables stand that could be off."""
        if self._is_last:
            return self._whole.get_error(eps)
        return np.zeros(np.shape(self.output_values))

    @property
    def _is_last(self) -> bool:
        return self._place == len(self._whole) - 1
