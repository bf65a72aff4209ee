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

from dovetail.core.amounts import several
from dovetail.core.arrays import FloatArray
from dovetail.core.description import ROUNDING, Description
from dovetail.core.errors import DovetailError, PredictorError

STEP = 1e-5
"""Length of a difference, relative to max(1, |x|)."""
COARSE_STEP = 5e-3
"""The same of a function that computes in float32: the third root of what that resolves."""
COARSE = ("float32", "float16")
"""What numpy has besides float64 that a function may answer in."""


class CallablePredictor:
    """A function of (n, d) float64 arrays that returns (n, q) or (n,) numbers."""

    def __init__(self, function: Callable[[FloatArray], Any]) -> None:
        self._function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self._dtype = "float64"
        """What its answers, as far as they were seen, are computed in."""
        self._measured = False
        """Whether batches were compared: once, since functions may be slow."""

    def use_coarse_differences(self) -> None:
        """Let differences be as long as a function in float32 needs them, whatever dtype it answers in."""
        self._dtype = "float32"

    def predict(self, X: FloatArray) -> FloatArray:
        """The function's own answer."""
        return self._table_of_answers(np.array(X, dtype=np.float64))

    def snapshot(self, device: str) -> Callable[[Tensor], Tensor]:
        """The function itself, with differences for its gradient."""

        def forward(inputs: Tensor) -> Tensor:
            values: Tensor = ByNumpy.apply(inputs, self.predict, self._slopes)  # type: ignore[no-untyped-call]
            return values

        return forward

    def describe(self, X: FloatArray) -> Description:
        """Nothing can be seen from outside but how finely it computes: by its answers, row by row or not."""
        if not self._measured:
            self._measured, batch = True, self.predict(X)
            if self._dtype == "float64":
                others = [(batch[:1], self.predict(X[:1])), (batch[::-1], self.predict(X[::-1]))]
                self._dtype = _dtype_of_differences(others)
        return self._described()

    def _described(self) -> Description:
        return Description(self.name, dtypes=(self._dtype,), has_float64_copy=self._dtype == "float64")

    def _table_of_answers(self, X: FloatArray) -> FloatArray:
        try:
            answer = self._function(X)
        except DovetailError:
            raise
        except Exception as reason:
            if len(X) and self._answers_a_row(X[0]):
                raise PredictorError(
                    self._hint(X, f"fails on {several(len(X), 'sample')}: {reason}")
                ) from reason
            raise
        if answer is None:
            raise PredictorError(f"{self.name} returns None; let it return (n_samples, n_outputs) numbers.")
        if np.iscomplexobj(answer):
            raise PredictorError(f"{self.name} returns complex numbers; return real ones.")
        given = np.asarray(answer)
        if given.dtype.name in COARSE:
            self._dtype = given.dtype.name
        values = given.astype(np.float64)
        if values.ndim == 1:
            values = values[:, None]
        if values.ndim != 2 or len(values) != len(X):
            what = f"turns {several(len(X), 'sample')} into an array of shape {given.shape}"
            if len(X) and self._answers_a_row(X[0]):
                raise PredictorError(self._hint(X, what))
            raise PredictorError(
                f"{self.name} {what}; it must return (n_samples, n_outputs) or (n_samples,)."
            )
        return values

    def _answers_a_row(self, row: FloatArray) -> bool:
        """Whether a single row, as a vector, gives a number or a vector of them: the function means rows."""
        try:
            return np.ndim(np.asarray(self._function(row.copy()), dtype=np.float64)) <= 1
        except Exception:  # of whatever kind: it does not
            return False

    def _hint(self, X: FloatArray, what: str) -> str:
        return (
            f"{self.name} {what}; it seems to take one row of {X.shape[1]} features. Functions are asked "
            "about many samples at once: pass dovetail.Function(f, row_by_row=True), or write it for (n, d) "
            "arrays."
        )

    def _slopes(self, X: FloatArray) -> FloatArray:
        steps = (STEP if self._dtype == "float64" else COARSE_STEP) * np.maximum(1.0, np.abs(X))
        return self._differences(X, X - steps, X + steps)

    def _differences(self, X: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """(d, n, q) slopes between rows in which one feature is at either end; all rows in one batch."""
        n, d = X.shape
        moved = np.eye(d, dtype=bool)[:, None, :]
        rows = np.concatenate([np.where(moved, high, X), np.where(moved, low, X)]).reshape(-1, d)
        ahead, behind = np.split(self.predict(rows), 2)
        width = (high - low).T[:, :, None]
        rise = (ahead - behind).reshape(d, n, -1)
        return np.asarray(np.divide(rise, width, out=np.zeros_like(rise), where=width > 0.0))


def _dtype_of_differences(pairs: list[tuple[FloatArray, FloatArray]]) -> str:
    """float32 where the same rows differ from batch to batch by no more than that resolves, but by more
    than float64 does; what differs by more is not for a dtype to excuse, and is refused elsewhere."""
    apart = 0.0
    for one, other in pairs:
        if one.shape == other.shape:
            apart = max(apart, float(np.max(np.abs(one - other) / (1.0 + np.abs(one)), initial=0.0)))
    return "float32" if ROUNDING["float64"] < apart <= ROUNDING["float32"] else "float64"


class ByNumpy(torch.autograd.Function):
    """What only numpy computes, for torch: values of (n, d) rows, and (d, n, q) slopes; None: these are 0."""

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        values: Callable[[FloatArray], FloatArray],
        slopes: Callable[[FloatArray], FloatArray] | None,
    ) -> Tensor:
        """The values."""
        ctx.save_for_backward(inputs)
        ctx.slopes = slopes
        found = values(inputs.detach().cpu().numpy())
        return torch.as_tensor(found, dtype=torch.float64, device=inputs.device)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """The gradients times the slopes."""
        (inputs,) = ctx.saved_tensors
        if ctx.slopes is None:
            return torch.zeros_like(inputs), None, None
        slopes = ctx.slopes(inputs.detach().cpu().numpy())
        jacobian = torch.as_tensor(slopes, dtype=torch.float64, device=inputs.device)
        return torch.einsum("no,dno->nd", gradients[0], jacobian), None, None
