"""One phase of the default method: when it runs, for how long, and what it says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dovetail.methods.facts import AutoOptions, Facts
from dovetail.reformulations.reformulated import Reformulation
from dovetail.run.context import Method


@dataclass(frozen=True)
class Phase:
    """One row of the plan."""

    name: str
    when: str
    """In words, as the documentation has it."""
    applies: Callable[[Facts], bool]
    share: float
    """Of the time left."""
    method: Callable[[AutoOptions], Method]
    why: str
    """The section line of the log, facts to be filled in."""
    rewritten: tuple[Reformulation, ...] = ()
    """What the problem is rewritten by for this phase, where it can be."""
    least_seconds: float = 0.0
    """With less than that it would come to nothing, and the others have more use for the time."""
    needs_points: bool = False
    """Whether it begins with the points that methods before it have been at."""
    of_blocks: bool = False
    """Whether it takes all blocks at once, so that it holds with many of them."""


def share_in_words(share: float) -> str:
    """How much of the time left."""
    return "all" if share == 1.0 else f"{100 * share:g} %"
