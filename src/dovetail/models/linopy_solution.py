"""An answer handed to a linopy model, as its own solvers do: solution, objective, status."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.core.foreign import Answer, Reading

WITHOUT_POINT = {"infeasible": "infeasible", "unbounded": "unbounded", "error": "error"}
"""What linopy calls an end without a point, by dovetail's status; "other" for the rest."""
ENDED_BY = {"time": "time_limit", "iterations": "iteration_limit"}
"""What linopy calls the end of a point that is not proved to be optimal; "suboptimal" for the rest."""


def load_answer(model: Any, reading: Reading, answer: Answer) -> None:
    """Replace whatever solution the model has; linopy reads one only where the status is "ok"."""
    model.reset_solution()
    if answer.x is None:
        model.status = "warning"
        model.termination_condition = WITHOUT_POINT.get(answer.status, "other")
        model.objective._value = None  # which has no other way to be taken back
        return
    for _, variable in model.variables.items():
        labels = variable.labels
        found = (reading.column.get(label) for label in labels.values.ravel().tolist())
        values = [np.nan if j is None else answer.x[j] for j in found]
        variable.solution = labels.copy(data=np.reshape(values, labels.shape)).rename(None)
    if answer.objective is not None:
        model.objective.set_value(answer.objective)
    model.status = "ok"
    ended = ENDED_BY.get(answer.stop_reason, "suboptimal")
    model.termination_condition = answer.status if answer.status in ("optimal", "unbounded") else ended
