"""Any function f(X) -> Y on numpy batches as a predictor; its gradients are central differences.

Each gradient costs 2 d evaluations per sample, made in one batch. A step function
(a tree ensemble, say) has gradients of zero almost everywhere: the points a method
finds are still judged by the function itself.
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

STEP = 1e-5
"""Length of a difference, relative to max(1, |x|)."""


class CallablePredictor:
    """A function of (n, d) float64 arrays that returns (n, q) or (n,) numbers."""

    def __init__(self, function: Callable[[FloatArray], Any]) -> None:
        self._function = function
        self.name = getattr(function, "__name__", type(function).__name__)

    def predict(self, X: FloatArray) -> FloatArray:
        """The function's own answer."""
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
        return values

    def snapshot(self, device: str) -> Callable[[Tensor], Tensor]:
        """The function itself, with central differences for its gradient."""

        def forward(inputs: Tensor) -> Tensor:
            values: Tensor = _Differences.apply(inputs, self.predict)  # type: ignore[no-untyped-call]
            return values

        return forward

    def describe(self, X: FloatArray) -> Description:
        """Nothing can be seen from outside: not smooth, and no telling what it ends in."""
        return Description(self.name)


class _Differences(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, predict: Callable[[FloatArray], FloatArray]) -> Tensor:
        ctx.save_for_backward(inputs)
        ctx.predict = predict
        values = predict(inputs.detach().cpu().numpy())
        return torch.as_tensor(values, dtype=torch.float64, device=inputs.device)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (inputs,) = ctx.saved_tensors
        X = inputs.detach().cpu().numpy()
        n, d = X.shape
        steps = STEP * np.maximum(1.0, np.abs(X))
        moves = np.eye(d)[:, None, :] * steps[None, :, :]
        ahead, behind = np.split(ctx.predict(np.concatenate([X + moves, X - moves]).reshape(-1, d)), 2)
        slopes = (ahead - behind).reshape(d, n, -1) / (2.0 * steps.T[:, :, None])
        jacobian = torch.as_tensor(slopes, dtype=torch.float64, device=inputs.device)
        return torch.einsum("no,dno->nd", gradients[0], jacobian), None
