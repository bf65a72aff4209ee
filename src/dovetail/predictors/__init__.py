"""Foreign predictors, one file per library; importing this package imports none of them.

A library is recognised by the module names of an object's classes, so that neither
torch nor anything else is imported just to say that an object is not one of its own.
"""

from __future__ import annotations

from typing import Any

from dovetail.core.predictor import Predictor, register


def _comes_from(foreign: object, name: str) -> bool:
    return any(f"{cls.__module__}.{cls.__qualname__}" == name for cls in type(foreign).__mro__)


def _torch_module(foreign: Any) -> Predictor:
    from dovetail.predictors.torch_module import TorchPredictor

    return TorchPredictor(foreign)


def _plain_callable(foreign: Any) -> Predictor:
    from dovetail.predictors.plain_callable import CallablePredictor

    return CallablePredictor(foreign)


register(callable, _plain_callable)
register(lambda foreign: _comes_from(foreign, "torch.nn.modules.module.Module"), _torch_module)
