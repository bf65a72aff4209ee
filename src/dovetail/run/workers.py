"""Workers: objects that live as long as a run, here or elsewhere, and are asked all at once.

A *recipe* makes one object. Where objects live elsewhere, recipes, arguments and answers are pickled, and the
recipes are all that is kept here: a worker that is lost is replaced, its objects are made again, and asked
first what `renew_by` said. What is asked must be small; what is large stays with the object.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dovetail.run.budget import Budget

Recipe = Callable[[], object]
Arguments = Sequence[tuple[Any, ...] | None]
"""For every object; None for one that is not asked."""


@dataclass
class Traffic:
    """How many bytes went to the workers and came back, by the call they were for."""

    calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """To all workers at once counts as one."""
    sent: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    received: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def total(self) -> int:
        """Bytes in all, both ways."""
        return sum(self.sent.values()) + sum(self.received.values())

    def per_call(self, call: str) -> float:
        """Bytes both ways for one call to all workers."""
        return (self.sent[call] + self.received[call]) / max(self.calls[call], 1)


class Workers(Protocol):
    """See above."""

    @property
    def count(self) -> int:
        """How many workers there are."""
        ...

    @property
    def losses(self) -> int:
        """Workers that were lost so far, and replaced."""
        ...

    @property
    def traffic(self) -> Traffic:
        """Bytes so far."""
        ...

    def ask(self, call: str, arguments: Arguments, budget: Budget) -> list[Any]:
        """What the method `call` of every object answers; `OutOfTime` where they do not answer in time."""
        ...

    def renew_by(self, call: str, arguments: Arguments) -> None:
        """From now on objects that are made again are asked this first."""
        ...

    def close(self) -> None:
        """End them; nothing is asked after that."""
        ...


class Cluster(Protocol):
    """Somewhere else to work."""

    @property
    def description(self) -> str:
        """For the log."""
        ...

    @property
    def workers(self) -> int:
        """How many may be hired."""
        ...

    def hire(self, recipes: Sequence[Sequence[Recipe]], *, on_gpu: bool, budget: Budget) -> Workers:
        """A worker for each list of recipes: it makes these objects and keeps them."""
        ...


class Here:
    """All objects in this process, asked one after the other."""

    count, losses = 1, 0

    def __init__(self, recipes: Sequence[Recipe]) -> None:
        self.traffic = Traffic()
        self._objects = [make() for make in recipes]

    def ask(self, call: str, arguments: Arguments, budget: Budget) -> list[Any]:
        """Nothing travels, and nobody has to be waited for."""
        asked = zip(self._objects, arguments, strict=True)
        return [None if mine is None else getattr(made, call)(*mine) for made, mine in asked]

    def renew_by(self, call: str, arguments: Arguments) -> None:
        """What is here is not lost."""

    def close(self) -> None:
        """Nothing to end."""
