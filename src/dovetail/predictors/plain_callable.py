"""Any function f(X) -> Y on numpy batches as a predictor; its gradients are central differences.

Each gradient costs 2 d evaluations per sample, made in one batch. A step function
(a tree ensemble, say) has gradients of zero almost everywhere: the points a method
finds are still judged by the function itself.

A function may compute in float32 (a network behind it, say), which its answers show: differences are
then longer, and what rounding does to its answers is allowed for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dovetail.core.arrays import FloatArray
from dovetail.core.description import Description
from dovetail.core.errors import PredictorError

STEP = {"float64": 1e-5, "float32": 5e-3, "float16": 5e-2}
"""Length of a difference, relative to max(1, |x|): the cube root of the roundoff, where it loses least."""
MOST_BY_CHANCE = 8
"""Long numbers that must all be of float32: one of float64 is so by chance once in 2^29."""
SHORT = 12
"""Significant bits of numbers that people write: they say nothing of the dtype they were computed in."""


Asked = Callable[[FloatArray], tuple[FloatArray, str]]


class CallablePredictor:
    """A function of (n, d) float64 arrays that returns (n, q) or (n,) numbers."""

    def __init__(self, function: Callable[[FloatArray], Any]) -> None:
        self._function = function
        self.name = getattr(function, "__name__", type(function).__name__)

    def predict(self, X: FloatArray) -> FloatArray:
        """The function's own answer."""
        return self._asked(X)[0]

    def _asked(self, X: FloatArray) -> tuple[FloatArray, str]:
        """The answer, and the dtype that it was computed in as far as it shows."""
        answer = self._function(np.array(X, dtype=np.float64))
        if np.iscomplexobj(answer):
            raise PredictorError(f"{self.name} returns complex numbers; return real ones.")
        values = np.asarray(answer, dtype=np.float64)
        if values.ndim == 1:
            values = values[:, None]
        if values.ndim != 2 or len(values) != len(X):
            raise PredictorError(
                f"{self.name} turns {len(X)} samples into an array of shape {values.shape}; "
                "it must return (n_samples, n_outputs) or (n_samples,)."
            )
        return values, _computed_in(answer, values)

    def snapshot(self, device: str) -> Callable[[Tensor], Tensor]:
        """The function itself, with central differences for its gradient."""

        def forward(inputs: Tensor) -> Tensor:
            values: Tensor = _Differences.apply(inputs, self._asked)  # type: ignore[no-untyped-call]
            return values

        return forward

    def describe(self, X: FloatArray) -> Description:
        """Nothing can be seen from outside but the dtype: not smooth, and no telling what it ends in."""
        dtype = self._asked(X)[1]
        return Description(self.name, dtypes=(dtype,), has_float64_copy=dtype == "float64")


def _computed_in(answer: Any, values: FloatArray) -> str:
    """float64, unless the answer is of another dtype, or of long numbers that another dtype holds exactly."""
    name = str(getattr(answer, "dtype", "")).removeprefix("torch.")
    if name in STEP and name != "float64":
        return name
    finite = values[np.isfinite(values)]
    long = np.mod(np.frexp(finite)[0] * 2.0**SHORT, 1.0) != 0.0
    with np.errstate(over="ignore"):
        held = finite.astype(np.float32).astype(np.float64) == finite
    return "float32" if long.sum() > MOST_BY_CHANCE and held.all() else "float64"


class _Differences(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, asked: Asked) -> Tensor:
        ctx.save_for_backward(inputs)
        ctx.asked = asked
        values, ctx.dtype = asked(inputs.detach().cpu().numpy())
        return torch.as_tensor(values, dtype=torch.float64, device=inputs.device)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (inputs,) = ctx.saved_tensors
        X = inputs.detach().cpu().numpy()
        n, d = X.shape
        steps = STEP[ctx.dtype] * np.maximum(1.0, np.abs(X))
        moves = np.eye(d)[:, None, :] * steps[None, :, :]
        ahead, behind = np.split(ctx.asked(np.concatenate([X + moves, X - moves]).reshape(-1, d))[0], 2)
        slopes = (ahead - behind).reshape(d, n, -1) / (2.0 * steps.T[:, :, None])
        jacobian = torch.as_tensor(slopes, dtype=torch.float64, device=inputs.device)
        return torch.einsum("no,dno->nd", gradients[0], jacobian), None
