"""What PySCIPOpt-ML's functions give back."""

from __future__ import annotations

from typing import Any

from dovetail.modelling.predictor_constr import PredictorConstr


class ScipPredictorConstr(PredictorConstr):
    """A `PredictorConstr` with the peer's other attributes."""

    @property
    def scip_model(self) -> Any:
        """The model."""
        return self._model

    @property
    def unique_naming_prefix(self) -> str:
        """How log and messages call it."""
        return self.name
