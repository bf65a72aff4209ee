"""The objects that gurobi-machinelearning's functions return."""

from __future__ import annotations

from typing import Any, TextIO

from dovetail.modelling.predictor_constr import PredictorConstr


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
