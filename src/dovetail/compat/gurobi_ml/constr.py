"""What gurobi-machinelearning's functions give back."""

from __future__ import annotations

from typing import Any, TextIO

from dovetail.modelling.predictor_constr import PredictorConstr


class GurobiPredictorConstr(PredictorConstr):
    """A `PredictorConstr` with the peer's other attributes; of rows and neurons there are none to list."""

    @property
    def gp_model(self) -> Any:
        """The model."""
        return self._model

    @property
    def vars(self) -> list[Any]:
        """Variables that were added to the model: the outputs, where none were passed."""
        return [] if self._created is None else [*self._foreign.unpack(self._created).flat]

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
