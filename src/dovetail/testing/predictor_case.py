"""One predictor for the suite: how its owner makes it, asks it, looks at it and trains it again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray

SINGLE, DOUBLE = 1e-5, 1e-10
"""How close a copy is to an owner that computes in float32, in float64; relative to max(1, |value|)."""


class PredictorCase(ABC):
    """An object that dovetail takes for a predictor, with the words of its own library.

    Derive a class that writes the four methods, and say in its fields what must come out. `label` is how
    the tests call the case, `called` how dovetail's messages call the predictor.
    """

    is_float64 = False
    """Whether the owner computes in float64."""
    has_float64_copy = True
    """Whether a copy for gradients can compute in float64."""
    device = "cpu"
    """Where the owner computes."""
    identical = True
    """Whether predict is the owner's answer to the last bit."""
    follows = True
    """Whether predict says what the owner's object says now; a file is read once."""
    freezes = True
    """Whether a snapshot keeps what it was made of; a function can only be called."""
    layers = False
    """Whether its layers are known."""
    smooth: bool | None = None
    """Whether second derivatives say something; None leaves it open."""
    sigmoid: bool | None = None
    """Whether it is known to end, or not to end, in a sigmoid; None leaves it open."""
    whole: tuple[int, ...] = ()
    """Features that take whole numbers only; the points should have such."""
    close = SINGLE
    """How close the copy for gradients is, relative to max(1, |value|)."""

    def __init__(self, label: str, *, called: str, features: int, outputs: int = 1, **fields: Any) -> None:
        self.label, self.called, self.features, self.outputs = label, called, features, outputs
        for name, value in fields.items():
            assert hasattr(self, name), name
            setattr(self, name, value)

    def __str__(self) -> str:
        return self.label

    def points(self) -> FloatArray:
        """(n, features) where the predictor is asked; the answers there should not be all alike."""
        return np.random.default_rng(0).uniform(-2, 2, (7, self.features))

    @abstractmethod
    def make(self, folder: Path) -> Any:
        """The owner's object, made anew; files go to `folder`."""
        ...

    @abstractmethod
    def answer(self, owner: Any, X: FloatArray) -> FloatArray:
        """The library's own answer, as its user would get it; (n, outputs), float64."""
        ...

    @abstractmethod
    def state(self, owner: Any) -> list[Any]:
        """All that a solve must leave as it is; things that `==` compares."""
        ...

    @abstractmethod
    def change(self, owner: Any) -> None:
        """Other weights in the same object, so that its answers change by more than 1e-3."""
        ...
