"""A predictor that is made of two, one behind the other: a product of what another one predicts, say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from dovetail.core.arrays import IntArray
from dovetail.core.predictor import Predictor


@dataclass(frozen=True, eq=False)
class Outer:
    """What is made of a predictor's answers, as a predictor that reads some of the answers, then inputs."""

    predictor: Predictor
    answers: IntArray
    inputs: IntArray


@dataclass(frozen=True, eq=False)
class Apart:
    """The two."""

    inner: Predictor
    extra: int
    """Inputs at the end that the inner one does not see."""
    keep: bool
    """Whether the inner one's own answers are outputs as well, the first ones."""
    outer: Outer


@runtime_checkable
class MadeOfTwo(Protocol):
    """A predictor that can be taken apart."""

    def apart(self) -> Apart | None:
        """The predictor inside and what is made of its answers, as two; None where nothing is inside."""
        ...
