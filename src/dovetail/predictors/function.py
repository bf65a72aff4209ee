"""Any function f(X) -> Y on numpy batches as a predictor, with gradients by central differences.

Each gradient costs 2 d evaluations per sample, made in one batch. A step function (a tree ensemble, say) has
gradients of zero almost everywhere; the solutions that a method finds are still judged by the function
itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.description import ROUNDING, Description
from dovetail.core.errors import DovetailError, PredictorError
from dovetail.core.predictor import EvaluationsSpentError
from dovetail.core.words import several

STEP = 1e-5
"""The step of differences, relative to max(1, |x|)."""
COARSE_STEP = 5e-3
"""The step for a function that computes in float32: the third root of its resolution."""
COARSE = ("float32", "float16")
"""Dtypes of numpy besides float64 that a function may return."""


class CallablePredictor:
    """A function of (n, d) float64 arrays that returns (n, q) or (n,) numbers."""

    def __init__(self, function: Callable[[FloatArray], Any]) -> None:
        self._function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self._dtype = "float64"
        """The dtype of the answers so far."""
        self._measured = False
        """Whether batches were compared; done once, because functions may be slow."""

    def use_coarse_differences(self) -> None:
        """Use the step for float32, whatever dtype the function returns."""
        self._dtype = "float32"

    def predict(self, X: FloatArray) -> FloatArray:
        """The function's own answer."""
        return self._table_of_answers(np.array(X, dtype=np.float64))

    def snapshot(self, device: str) -> Callable[[Tensor], Tensor]:
        """The function with differences as its gradient."""

        def forward(inputs: Tensor) -> Tensor:
            values: Tensor = ByNumpy.apply(inputs, self.predict, self._slopes)  # type: ignore[no-untyped-call]
            return values

        return forward

    def describe(self, X: FloatArray) -> Description:
        """A description: only the precision is visible, from answers to single rows and batches."""
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
        """Whether the function takes a single row as a vector, so that `row_by_row=True` is probably
        meant."""
        try:
            return np.ndim(np.asarray(self._function(row.copy()), dtype=np.float64)) <= 1
        except Exception:  # whatever the reason, the function takes no single row
            return False

    def _hint(self, X: FloatArray, what: str) -> str:
        return (
            f"{self.name} {what}; it seems to take one sample of {X.shape[1]} features. Functions are asked "
            "about many samples at once: pass dovetail.Function(f, row_by_row=True), or write it for (n, d) "
            "arrays."
        )

    def _slopes(self, X: FloatArray) -> FloatArray:
        steps = (STEP if self._dtype == "float64" else COARSE_STEP) * np.maximum(1.0, np.abs(X))
        return self._differences(X, X - steps, X + steps)

    def _differences(self, X: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """(d, n, q) slopes from rows in which one feature is at either end of its step; all rows in one
        batch."""
        n, d = X.shape
        moved = np.eye(d, dtype=bool)[:, None, :]
        rows = np.concatenate([np.where(moved, high, X), np.where(moved, low, X)]).reshape(-1, d)
        ahead, behind = np.split(self.predict(rows), 2)
        width = (high - low).T[:, :, None]
        rise = (ahead - behind).reshape(d, n, -1)
        return np.asarray(np.divide(rise, width, out=np.zeros_like(rise), where=width > 0.0))


def _dtype_of_differences(pairs: list[tuple[FloatArray, FloatArray]]) -> str:
    """float32 if the same rows differ between batches by more than float64 allows, but no more than float32
    does. Larger differences are refused elsewhere."""
    apart = 0.0
    for one, other in pairs:
        if one.shape == other.shape:
            apart = max(apart, float(np.max(np.abs(one - other) / (1.0 + np.abs(one)), initial=0.0)))
    return "float32" if ROUNDING["float64"] < apart <= ROUNDING["float32"] else "float64"


class ByNumpy(torch.autograd.Function):
    """A torch function for values and slopes computed by numpy: (n, d) rows, (d, n, q) slopes (None: 0)."""

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
        """The incoming gradients times the slopes."""
        (inputs,) = ctx.saved_tensors
        if ctx.slopes is None:
            return torch.zeros_like(inputs), None, None
        slopes = ctx.slopes(inputs.detach().cpu().numpy())
        jacobian = torch.as_tensor(slopes, dtype=torch.float64, device=inputs.device)
        return torch.einsum("no,dno->nd", gradients[0], jacobian), None, None


class Function(CallablePredictor):
    """A Python function as a predictor, with limits on how it is called.

    A plain function needs no wrapper. This class keeps every answer, so that no sample is evaluated twice:

    - `integer_only=True`: the function takes integers only; `integer_only=[0, 2]`: these features are
      integers. The function is never called elsewhere, and the variables must be integer. Gradients are
      differences between neighbouring integers.
    - `max_evaluations`: the number of different samples that may be evaluated, over all solves. When it is
      used up, a solve ends with the best solution so far (stop reason "evaluations").
    - `row_by_row=True`: the function takes one sample, a vector of features, and returns a number or a
      vector.

    `evaluations` counts the samples evaluated so far.

    >>> import dovetail as dt
    >>> def profit(plan):  # one plan at a time
    ...     return 5.0 * plan[0] - (plan[0] - plan[1]) ** 2
    >>> asked = dt.Function(profit, row_by_row=True, integer_only=True, max_evaluations=100)
    >>> mip = dt.Mip([0.0, -1.5, 1.0], upper=[3.0, 3.0, 99.0], integer=[True, True, False], sense="max")
    >>> problem = dt.Problem(mip)
    >>> block = problem.add_predictor(asked, inputs=[0, 1], outputs=[2])
    >>> result = dt.solve(problem, time_limit=5, log=False)
    >>> result.x.tolist(), asked.evaluations <= 17
    ([3.0, 2.0, 14.0], True)
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        *,
        integer_only: Any = False,
        max_evaluations: int | None = None,
        row_by_row: bool = False,
        name: str = "",
    ) -> None:
        if not callable(function):
            raise PredictorError(f"Function takes a function, not {function!r}.")
        super().__init__(_by_rows(function) if row_by_row else function)
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self._integer_only = _features(integer_only)
        self._limit = _limit(max_evaluations)
        self._memory = _Memory()
        """The answers so far, shared by all copies of this object."""

    @property
    def evaluations(self) -> int:
        """Number of samples evaluated so far."""
        return self._memory.asked

    @property
    def evaluations_left(self) -> int | None:
        """Number of samples that may still be evaluated; None without a limit."""
        return None if self._limit is None else max(0, self._limit - self._memory.asked)

    def predict(self, X: FloatArray) -> FloatArray:
        """The function's answer, from memory or new."""
        rows, memory = self._rounded(X), self._memory
        if len(rows) == 0:
            return self._table_of_answers(rows) if memory.outputs is None else np.empty((0, memory.outputs))
        keys = [row.tobytes() for row in rows]
        with memory.lock:
            new = {key: place for place, key in enumerate(keys) if key not in memory.answers}
            if new:
                self._evaluate_new_rows(rows[list(new.values())], list(new))
            return np.array([memory.answers[key] for key in keys])

    def describe(self, X: FloatArray) -> Description:
        """The description of a function; the first time, one row is evaluated twice, in a batch and alone."""
        batch = self.predict(X)
        if not self._memory.tried:
            self._try_again(self._rounded(X[:1]), batch[:1])
        return replace(self._described(), whole_features=tuple(map(int, self._integer_features(X.shape[1]))))

    def _try_again(self, row: FloatArray, before: FloatArray) -> None:
        """Evaluate a row again, because memory would hide randomness and dependence between rows."""
        self._require_left(1)
        self._memory.asked, self._memory.tried = self._memory.asked + 1, True
        again = self._table_of_answers(row)
        apart = float(np.max(np.abs(again - before) / (1.0 + np.abs(before)), initial=0.0))
        if not apart <= ROUNDING["float32"]:
            raise PredictorError(
                f"{self.name} gives {before[0].tolist()} and then {again[0].tolist()} for the same "
                "sample; it must depend neither on chance nor on the other samples of a batch."
            )
        if apart > ROUNDING["float64"] and self._dtype == "float64":
            self._dtype = "float32"

    def _evaluate_new_rows(self, rows: FloatArray, keys: list[bytes]) -> None:
        """Evaluate the function at rows that are not in memory."""
        self._require_left(len(rows))
        memory = self._memory
        memory.asked += len(rows)
        values = self._table_of_answers(rows.copy())
        memory.outputs = values.shape[1]
        memory.answers.update(zip(keys, values, strict=True))
        low, high = rows.min(axis=0), rows.max(axis=0)
        memory.low = low if memory.low is None else np.minimum(memory.low, low)
        memory.high = high if memory.high is None else np.maximum(memory.high, high)

    def _require_left(self, rows: int) -> None:
        if self._limit is not None and self._memory.asked + rows > self._limit:
            raise EvaluationsSpentError(
                f"{self.name} has evaluated {self._memory.asked} samples; {rows} more would exceed "
                f"max_evaluations={self._limit}."
            )

    def _rounded(self, X: FloatArray) -> FloatArray:
        """Rows with integer features rounded; never -0."""
        rows = np.array(X, dtype=np.float64)
        whole = self._integer_features(rows.shape[1])
        rows[:, whole] = np.round(rows[:, whole])
        return rows + 0.0

    def _integer_features(self, features: int) -> IntArray:
        if self._integer_only is True:
            return np.arange(features)
        chosen = np.array(self._integer_only or (), dtype=np.int64)
        if np.any((chosen < -features) | (chosen >= features)):
            raise PredictorError(
                f"{self.name}: integer_only is {chosen.tolist()}, but there are {features} features."
            )
        return chosen % features if features else chosen

    def _slopes(self, X: FloatArray) -> FloatArray:
        """Differences; for integers between neighbours. They stay within the range evaluated before,
        one-sided at its ends, because the function may be undefined outside."""
        rows, memory = self._rounded(X), self._memory
        steps = (STEP if self._dtype == "float64" else COARSE_STEP) * np.maximum(1.0, np.abs(rows))
        steps[:, self._integer_features(rows.shape[1])] = 1.0
        low, high = rows - steps, rows + steps
        if memory.low is not None and memory.high is not None:
            low = np.minimum(np.maximum(low, memory.low), rows)
            high = np.maximum(np.minimum(high, memory.high), rows)
        return self._differences(rows, low, high)


@dataclass(eq=False)
class _Memory:
    answers: dict[bytes, FloatArray] = field(default_factory=dict)
    asked: int = 0
    tried: bool = False
    outputs: int | None = None
    low: FloatArray | None = None
    high: FloatArray | None = None
    lock: Any = field(default_factory=threading.RLock)


def _by_rows(function: Callable[[FloatArray], Any]) -> Callable[[FloatArray], Any]:
    def asked(X: FloatArray) -> Any:
        return np.array([np.atleast_1d(np.asarray(function(row))) for row in X])

    return asked


def _features(integer_only: Any) -> bool | tuple[int, ...]:
    if isinstance(integer_only, bool):
        return integer_only
    try:
        found = tuple(integer_only)
    except TypeError:
        found = (integer_only,)
    if all(isinstance(one, Integral) and not isinstance(one, bool) for one in found):
        return tuple(map(int, found))
    raise PredictorError(f"Function: integer_only is {integer_only!r}; give True, or numbers of features.")


def _limit(said: Any) -> int | None:
    if said is None:
        return None
    if isinstance(said, Integral) and not isinstance(said, bool) and int(said) > 0:
        return int(said)
    raise PredictorError(f"Function: max_evaluations is {said!r}; give a whole number of at least 1.")
