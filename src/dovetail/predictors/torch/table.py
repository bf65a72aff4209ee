"""A module's answer as a table: one row per sample, one column per output."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from dovetail.core.errors import PredictorError


def as_table(outputs: Any, samples: int) -> Tensor:
    """The module's outputs as (n, q)."""
    if not isinstance(outputs, Tensor):
        raise PredictorError(
            f"the module returns {type(outputs).__name__}, not a tensor; "
            "wrap it in a module whose forward returns the one tensor that is meant."
        )
    table: Tensor = outputs.unsqueeze(1) if outputs.ndim == 1 else outputs
    if table.ndim != 2 or len(table) != samples:
        raise PredictorError(
            f"the module turns {samples} samples into a tensor of shape {tuple(outputs.shape)}; "
            "it must return (n_samples, n_outputs) or (n_samples,)."
        )
    return table
