"""A module in evaluation mode for a while, and back in its own mode after."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

MODE = threading.RLock()
"""Held while a module is in evaluation mode: it may be switched back under another thread otherwise."""


@contextmanager
def evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Within it dropout does nothing, and normalisations use what they learned."""
    with MODE:
        training = [part for part in module.modules() if part.training]
        for part in training:
            _set(part, False)
        try:
            yield
        finally:
            for part in training:
                _set(part, True)


def _set(part: nn.Module, training: bool) -> None:
    """Past `Module.__setattr__`, which looks for parameters first: of 128 parts that is a millisecond, a part
    of what a small batch takes. Parts that have a way of their own (TorchScript) are asked by it."""
    if type(part).__setattr__ is nn.Module.__setattr__ and "training" in vars(part):
        vars(part)["training"] = training
    else:
        part.training = training
