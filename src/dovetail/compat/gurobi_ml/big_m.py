"""What gurobi-machinelearning asks of inputs where its users ask for `formulation="bigm"`.

dovetail needs no big M for a predictor. But who asks for one is told by the peer that an input has no bounds,
which is mostly one that was forgotten, and it is told here.
"""

from __future__ import annotations

from typing import Any

from dovetail.core.errors import OptionError
from dovetail.core.mip import INFINITY
from dovetail.models import foreign_model


def require_bounds(model: Any, inputs: Any) -> None:
    """An `OptionError` names the first input without a lower or an upper bound."""
    model.update()  # gurobipy shows no bounds of variables before
    variable: Any
    for variable in foreign_model(model).unpack(inputs).flat:
        low, high = getattr(variable, "LB", 0.0), getattr(variable, "UB", 0.0)  # a number in a frame is fixed
        if max(-low, high) >= INFINITY:
            raise OptionError(
                f'{variable.VarName} goes from {low:g} to {high:g}, and formulation="bigm" needs bounds of '
                "all inputs: give them, or bigm=, or leave formulation= out, since dovetail takes the "
                "predictor without a big M."
            )
