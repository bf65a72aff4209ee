"""Foreign predictors, one file per library; importing this package imports none of them.

A library is recognised by the module names of an object's classes, so that neither
torch nor anything else is imported just to say that an object is not one of its own.
"""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Any

from dovetail.core.predictor import Predictor, register


def _comes_from(foreign: object, name: str) -> bool:
    return any(f"{cls.__module__}.{cls.__qualname__}" == name for cls in type(foreign).__mro__)


def _torch_module(foreign: Any) -> Predictor:
    from dovetail.predictors.torch.module import TorchPredictor

    return TorchPredictor(foreign)


def _keras_model(foreign: Any) -> Predictor:
    from dovetail.predictors.keras_model import KerasPredictor

    return KerasPredictor(foreign)


def _skorch_net(foreign: Any) -> Predictor:
    from dovetail.predictors.skorch_net import SkorchPredictor

    return SkorchPredictor(foreign)


def _scikit_learn(foreign: Any) -> Predictor:
    from dovetail.predictors.scikit_learn.predictor import ScikitLearnPredictor

    return ScikitLearnPredictor(foreign)


def _file(foreign: Any) -> Any:
    from dovetail.predictors.files import load_predictor

    return load_predictor(foreign)


def _is_estimator(foreign: object) -> bool:
    """Of scikit-learn or derived from it; what can be called is a function first."""
    return not callable(foreign) and any(
        cls.__module__.startswith("sklearn.") for cls in type(foreign).__mro__
    )


def _is_keras(foreign: object) -> bool:
    """Of Keras 3, whatever its backend, or of the Keras that came with tensorflow."""
    return any(
        cls.__name__ == "Layer" and cls.__module__.startswith(("keras.", "tf_keras."))
        for cls in type(foreign).__mro__
    )


def _onnx_model(foreign: Any) -> Predictor:
    from dovetail.predictors.onnx.model import OnnxPredictor

    return OnnxPredictor(foreign)


def _is_onnx(foreign: object) -> bool:
    if isinstance(foreign, (str, PurePath)):
        return str(foreign).lower().endswith(".onnx")
    return _comes_from(foreign, "onnx.onnx_ml_pb2.ModelProto")


def _is_path(foreign: object) -> bool:
    """A word that looks like no file and is none is not taken for a path."""
    if isinstance(foreign, str):
        return "." in foreign or os.path.exists(foreign)
    return isinstance(foreign, os.PathLike)


def _plain_callable(foreign: Any) -> Predictor:
    from dovetail.predictors.plain_callable import CallablePredictor

    return CallablePredictor(foreign)


register(callable, _plain_callable)
register(_is_estimator, _scikit_learn)
register(lambda foreign: _comes_from(foreign, "skorch.net.NeuralNet"), _skorch_net)
register(lambda foreign: _comes_from(foreign, "torch.nn.modules.module.Module"), _torch_module)
register(_is_onnx, _onnx_model)
register(_is_keras, _keras_model)
register(_is_path, _file)
