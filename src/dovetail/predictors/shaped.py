"""Predictors of samples that are not rows: images (channels, height, width), series (steps, features).

dovetail works on rows of features; variables with more than two axes mean samples of that shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from dovetail.predictors import PREDICTORS


def shaped(predictor: Any, shape: tuple[int, ...]) -> Iterator[object]:
    """Converts rows to samples of that shape for the predictor, in the order of the attempts.

    torch has the channels of a picture first. If the variables have channels last, as Keras and the peers'
    networks do, the axes are turned: only one of the two orders fits unless a picture's height equals its
    number of channels.
    """
    kind = PREDICTORS.recognised(predictor)
    if kind == "Keras":
        from dovetail.predictors.keras_model import of_rows

        yield of_rows(predictor, shape)
    elif kind == "torch.nn.Module":
        yield nn.Sequential(nn.Unflatten(1, shape), predictor, nn.Flatten())
        if len(shape) == 3:
            yield nn.Sequential(nn.Unflatten(1, shape), _ChannelsFirst(), predictor, nn.Flatten())
    elif kind == "callable":
        yield _Shaped(predictor, shape)


class _ChannelsFirst(nn.Module):
    def forward(self, pictures: Tensor) -> Tensor:
        return pictures.permute(0, 3, 1, 2)


class _Shaped:
    def __init__(self, function: Any, shape: tuple[int, ...]) -> None:
        self._function, self._shape = function, shape
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __call__(self, X: Any) -> Any:
        answer = self._function(X.reshape(len(X), *self._shape))
        return answer.reshape(len(X), -1) if getattr(answer, "ndim", 0) > 2 else answer
