"""Whether a graph takes many samples at once: many a one was exported for a single sample."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from dovetail.core.errors import PredictorError, UnsupportedError
from dovetail.core.file_limits import Meter
from dovetail.predictors.onnx.memory import room

TRIAL = 3
"""Rows of the batch a model is tried on when it is read: two could be a size that stands in the file."""

Batch = Callable[[Tensor], Tensor]


def one_by_one(run: Batch, x: Tensor) -> Tensor:
    """Every row as a batch of its own, vectorised."""
    rows: Tensor = torch.vmap(lambda row: run(row.unsqueeze(0)).squeeze(0))(x)
    return rows


def trial_batch(features: int, dtype: torch.dtype) -> Tensor:
    """A few rows in [-1, 1], the same every time."""
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(TRIAL, features, generator=rng, dtype=torch.float64) * 2.0 - 1.0
    return x.to(dtype)


def takes_one(run: Batch, x: Tensor, declared: int | None, meter: Meter) -> bool:
    """Whether rows must be taken one by one, found out on the few of `x`.

    Rows that influence each other in a graph made for many are left for the probe to refuse.
    """
    together = _tried(lambda: [run(x[: TRIAL - 1]), run(x)][1], meter)
    apart = _tried(lambda: torch.cat([run(row.unsqueeze(0)) for row in x]), meter)
    if isinstance(together, Tensor) and (declared != 1 or isinstance(apart, Exception)):
        return False
    if isinstance(together, Tensor) and isinstance(apart, Tensor) and _close(together, apart):
        return False
    vectorised = apart if isinstance(apart, Exception) else _tried(lambda: one_by_one(run, x), meter)
    if isinstance(vectorised, Exception):
        reason = together if isinstance(together, Exception) else vectorised
        raise _unusable(meter.name, declared, reason)
    return True


def _unusable(name: str, declared: int | None, reason: Exception) -> PredictorError:
    fixed = "" if declared is None else f" It was exported for batches of {declared}."
    return PredictorError(
        f"{name} cannot take a batch of samples: {reason}{fixed} Export it with an open first "
        'axis: torch.onnx.export(..., dynamic_shapes=({0: torch.export.Dim("n")},)).'
    )


def _tried(action: Callable[[], Tensor], meter: Meter) -> Tensor | Exception:
    try:
        with torch.no_grad(), room(meter):
            return action()
    except UnsupportedError:
        raise
    except Exception as reason:
        if meter.met:
            raise
        return reason


def _close(a: Tensor, b: Tensor) -> bool:
    """Equal but for the order of sums: a batch of three is not added up as one row is."""
    tolerance = 1e-9 if a.dtype == torch.float64 else 1e-4
    return a.shape == b.shape and torch.allclose(a, b, tolerance, tolerance, equal_nan=True)
