"""Predictors of samples that are no rows: pictures (channels, height, width), series (steps, features).

dovetail knows rows of features; whoever passes variables of more than two axes means samples of that shape.
"""

from __future__ import annotations

from typing import Any

from dovetail.predictors import PREDICTORS


def shaped(predictor: Any, shape: tuple[int, ...]) -> object | None:
    """What takes rows and hands them to the predictor as samples of that shape; None where it has a shape."""
    kind = PREDICTORS.recognised(predictor)
    if kind == "Keras":
        from dovetail.predictors.keras_model import of_rows

        made: object = of_rows(predictor, shape)
        return made
    if kind == "torch.nn.Module":
        from torch import nn

        return nn.Sequential(nn.Unflatten(1, shape), predictor, nn.Flatten())
    if kind == "callable":
        return _Shaped(predictor, shape)
    return None


class _Shaped:
    """A function of samples as a function of rows."""

    def __init__(self, function: Any, shape: tuple[int, ...]) -> None:
        self._function, self._shape = function, shape
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __call__(self, X: Any) -> Any:
        answer = self._function(X.reshape(len(X), *self._shape))
        return answer.reshape(len(X), -1) if getattr(answer, "ndim", 0) > 2 else answer
