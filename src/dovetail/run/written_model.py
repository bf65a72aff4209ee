"""What became of the one model that a method wrote a whole problem into: the baseline's own record.

Writing such a model may take longer than solving it, and either may end for want of time or memory: whoever
compares methods has to tell these apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ModelEnd(StrEnum):
    """How it ended."""

    PROVED = "proved"
    """The solver says optimal, and the verified objective meets its bound."""
    TIME = "time"
    """The solver searched until its time was over."""
    WRITING = "writing"
    """The time was over, or somebody asked to stop, before the model was written."""
    MEMORY = "memory"
    """Out of memory: while it was written if the solver never began, else while the solver searched."""
    INFEASIBLE = "infeasible"
    """The solver says that its model has no point. It is not believed: its model is not the problem."""
    OTHER = "other"
    """Optimal by the solver's word only, unbounded, interrupted."""


@dataclass(frozen=True)
class WrittenModel:
    """Seconds, memory and size of a model, and how it ended."""

    end: ModelEnd
    writing_seconds: float
    solving_seconds: float | None = None
    """The solver's own, checks of its points not counted; None where it never began."""
    memory_gb: float | None = None
    """The most memory this process held meanwhile, all that was there before included; None where the system
    does not say."""
    variables: int | None = None
    """As built; None where it was not finished."""
    constraints: int | None = None
    said: str | None = None
    """The solver's last word; None where it never began, or did not end when it was asked to."""
