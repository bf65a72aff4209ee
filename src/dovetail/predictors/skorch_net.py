"""A trained skorch net: the torch module inside it, taken as the module it is.

skorch's own `predict_proba` may put a softmax or a sigmoid on top, depending on the training loss. That is
not done here: a module that ends in logits gives logits, and a class is decided at 0.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from dovetail.core.errors import PredictorError
from dovetail.predictors.torch.module import TorchPredictor


class SkorchPredictor(TorchPredictor):
    """Always the module the net holds now: training it again puts a new one in its place."""

    def __init__(self, net: Any) -> None:
        self._net = net
        super().__init__(self.module)
        self.name = f"{type(net).__name__} of {self.name}"

    @property
    def module(self) -> nn.Module:
        """The module of the net."""
        module = getattr(self._net, "module_", None)
        if not isinstance(module, nn.Module):
            raise PredictorError(
                f"{type(self._net).__name__} holds no module yet; call its fit (or initialize and "
                "load_params) first."
            )
        return module
