"""Recurrent networks on a GPU without cuDNN, whose kernels cannot be differentiated as a solve needs it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_lock = threading.Lock()
_users: list[bool] = []
"""What cuDNN's switch was, once for each forward pass that needs it off."""


@contextmanager
def without_cudnn() -> Iterator[None]:
    """cuDNN's recurrent kernels have no input gradients in evaluation mode, and no second ones at all.

    Torch has one switch for the whole process and no other way. It is touched only for recurrent networks
    on a GPU; other threads compute the same meanwhile, with other kernels. The last one out puts it back.
    """
    with _lock:
        _users.append(torch.backends.cudnn.enabled if not _users else _users[0])
        torch.backends.cudnn.enabled = False
    try:
        yield
    finally:
        with _lock:
            before = _users.pop()
            if not _users:
                torch.backends.cudnn.enabled = before
