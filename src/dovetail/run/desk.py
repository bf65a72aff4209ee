"""The far side of a worker: objects that were made of recipes, and the letters that ask them.

A letter is a pickle of (call, arguments of every object); the reply one of (True, answers) or of (False, what
was raised). Pickles run code when they are read: both sides trust each other.
"""

from __future__ import annotations

import os
import pickle
from typing import Any

import torch

from dovetail.run.failures import is_users, mark
from dovetail.version import __version__


class Desk:
    """Where one worker answers."""

    def __init__(self) -> None:
        self._objects: list[Any] = []

    def make(self, recipes: bytes) -> bytes:
        """Make the objects; answers with the process and the version of dovetail here."""
        return self._reply(self._made, recipes)

    def answer(self, letter: bytes) -> bytes:
        """What the objects say."""
        return self._reply(self._asked, letter)

    def _made(self, recipes: bytes) -> tuple[int, str]:
        read = pickle.loads(recipes)
        torch.set_num_threads(1)  # whatever was imported for them: there is a worker for every core
        self._objects = [make() for make in read]
        return os.getpid(), __version__

    def _asked(self, letter: bytes) -> list[Any]:
        call, arguments = pickle.loads(letter)
        asked = zip(self._objects, arguments, strict=True)
        return [None if mine is None else getattr(made, call)(*mine) for made, mine in asked]

    def _reply(self, work: Any, letter: bytes) -> bytes:
        try:
            with torch.no_grad():
                return pickle.dumps((True, work(letter)))
        except Exception as trouble:
            return pickle.dumps((False, _portable(trouble)))


def _portable(trouble: Exception) -> Exception:
    """The exception itself where it can travel, else what it says; whose it is goes with it."""
    users = is_users(trouble)  # a traceback, which may tell, does not travel
    try:
        pickle.loads(pickle.dumps(trouble))
    except Exception:
        trouble = RuntimeError(f"{type(trouble).__name__}: {trouble}")
    if users:
        mark(trouble)
    return trouble
