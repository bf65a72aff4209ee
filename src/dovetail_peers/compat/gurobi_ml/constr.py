"""The objects that gurobi-machinelearning's functions return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TextIO

import numpy as np

from dovetail.core.errors import ModelError, PredictorError
from dovetail.core.words import several
from dovetail.modelling.predictor_constr import PredictorConstr, as_outputs, as_samples
from dovetail.models import foreign_model


class GurobiPredictorConstr(PredictorConstr):
    """A `PredictorConstr` with the peer's other attributes; there are no rows and neurons to list."""

    @property
    def gp_model(self) -> Any:
        """The model."""
        return self._model

    @property
    def vars(self) -> list[Any]:
        """Variables that were added to the model: the outputs, if none were passed."""
        kept = self._created is not None and self.is_attached
        return [*self._foreign.unpack(self._created).flat] if kept else []

    @property
    def constrs(self) -> list[Any]:
        """Rows that were added to the model: none, and so are `qconstrs`, `genconstrs` and `sos`."""
        return []

    qconstrs = genconstrs = sos = constrs

    def print_stats(self, file: TextIO | None = None, *, abbrev: bool = False) -> None:
        """Print the attachment in a few lines; in one line with `abbrev`."""
        if abbrev:
            print(repr(self), file=file)
        else:
            super().print_stats(file)


KINDS = {"constrs": "getConstrs", "qconstrs": "getQConstrs", "genconstrs": "getGenConstrs", "sos": "getSOSs"}
"""Kinds of items that can be added to a model besides variables, and how the model lists them."""


class AbstractPredictorConstr(ABC):
    """Derive from it, and add the predictor's variables and rows to `self.gp_model` in `_mip_model`.

    They are ordinary rows of the model: `dovetail.solve` keeps them like all others.
    """

    vars: list[Any]
    """Variables that were added to the model."""
    constrs: list[Any]
    """Rows that were added; and so are `qconstrs`, `genconstrs` and `sos`."""
    qconstrs: list[Any]
    genconstrs: list[Any]
    sos: list[Any]

    def __init__(self, gp_model: Any, input_vars: Any, output_vars: Any = None, **options: Any) -> None:
        self.gp_model = self._gp_model = gp_model
        self._name = str(options.pop("name", "") or type(self).__name__)
        before = {kind: len(found) for kind, found in self._listed().items()}
        foreign = foreign_model(gp_model)
        samples = as_samples(foreign.unpack(input_vars))
        self._input = foreign.table(input_vars, samples)
        self._require("input", samples.shape[1])  # before anything is added to the model
        made = self._create_output_vars(self._input) if output_vars is None else output_vars
        self._output: Any = None
        if made is not None:
            outputs = as_outputs(foreign.unpack(made), len(samples))
            self._output = foreign.table(made, outputs)
            self._require("output", outputs.shape[1])
        self._mip_model(**options)
        if self._output is None:
            raise PredictorError(
                f"{self._name} got no output_vars, and its _mip_model has not set self._output to its own."
            )
        for kind, found in self._listed().items():
            setattr(self, kind, found[before[kind] :])

    @property
    def input(self) -> Any:
        """(n_samples, n_features) variables."""
        return self._input

    @property
    def output(self) -> Any:
        """(n_samples, n_outputs) variables."""
        return self._output

    @abstractmethod
    def _mip_model(self, **options: Any) -> None:
        """Tie `self.output` to `self.input` by variables and rows of `self.gp_model`."""

    @abstractmethod
    def get_error(self, eps: float | None = None) -> Any:
        """The difference between the outputs and the predictor's answer to the inputs."""

    def _create_output_vars(self, input_vars: Any, name: str = "out") -> Any:
        """The number of outputs for each sample is `self._output_shape`, 1 unless it is set."""
        shape = (int(input_vars.shape[0]), int(getattr(self, "_output_shape", 1)))
        return self.gp_model.addMVar(shape, lb=-np.inf, name=f"{self._name}.{name}")

    def _require(self, what: str, found: int) -> None:
        wanted = getattr(self, f"_{what}_shape", found)
        if wanted != found:
            raise PredictorError(f"{self._name}: {found} {what}s for each sample; it has {wanted}.")

    @property
    def _has_solution(self) -> bool:
        """Whether the model has been solved since it was changed."""
        try:
            return len(self.output_values) > 0
        except ModelError:
            return False

    @property
    def input_values(self) -> Any:
        """Values of the inputs, at the point of the model's last solve."""
        return _values(self.input)

    @property
    def output_values(self) -> Any:
        """The values of the outputs."""
        return _values(self.output)

    def _listed(self) -> dict[str, list[Any]]:
        self.gp_model.update()
        rows = {kind: getattr(self.gp_model, function)() for kind, function in KINDS.items()}
        return {"vars": self.gp_model.getVars(), **rows}

    def print_stats(self, abbrev: bool = False, file: TextIO | None = None) -> None:
        """The items that were added."""
        variables, rows = several(len(self.vars), "variable"), several(len(self.constrs), "row")
        print(f"{self._name}: {variables} and {rows} added by its own _mip_model", file=file)

    def remove(self) -> None:
        """Remove the added items from the model."""
        for kind in (*KINDS, "vars"):
            self.gp_model.remove(getattr(self, kind))
            setattr(self, kind, [])
        self.gp_model.update()


AbstractPredictorConstr.register(GurobiPredictorConstr)


def _values(entries: Any) -> Any:
    return np.array([[_value(entry) for entry in row] for row in entries.tolist()])


def _value(entry: Any) -> float:
    """The value of a variable at the last solve; a number in a frame is returned as it is."""
    if not hasattr(entry, "VarName"):
        return float(entry)
    try:
        return float(entry.X)
    except AttributeError:  # gurobipy's word for a variable without a value
        raise ModelError(f"{entry.VarName} has no value: call dovetail.solve(model) first.") from None
