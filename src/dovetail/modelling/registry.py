"""What is attached to which model; a model that its owner lets go is forgotten."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from dovetail.core.errors import ModelError, PredictorError
from dovetail.core.names import free_name
from dovetail.core.problem import Problem
from dovetail.modelling.attachment import Attachment


@dataclass(eq=False)
class Registry:
    """What is attached to one model."""

    attachments: list[Attachment] = field(default_factory=list)
    read: set[Hashable] = field(default_factory=set)
    written: set[Hashable] = field(default_factory=set)
    """Keys of variables that some attachment reads or writes: most new ones have nothing to do with older."""

    lost: bool = False
    """Whether the model is a copy of one with predictors, none of which it has."""

    def involves(self, inputs: set[Hashable], outputs: set[Hashable]) -> bool:
        """Whether a new attachment may clash with the others, or close a cycle."""
        return bool(outputs & (self.read | self.written | inputs))

    def free_name(self, model: Any, name: str, prefix: str) -> str:
        """The name asked for, which must be free; else one made of the peers' prefix, which need not be."""
        taken = {attachment.name for attachment in self.attachments}
        if isinstance(model, Problem):
            taken |= {block.name for block in model.blocks}
        if name in taken:
            raise PredictorError(f"there is already a block called {name!r}; give another name=.")
        if name or (prefix and prefix not in taken):
            return name or prefix
        return free_name(prefix or "block", taken)


_registries: WeakKeyDictionary[Any, Registry] = WeakKeyDictionary()


def registry_of(model: Any) -> Registry:
    """What is attached to `model`; an empty one is kept from now on if there was none."""
    return _registries.setdefault(model, Registry())


def attached_to(model: Any) -> tuple[Attachment, ...]:
    """The same for those who only look."""
    registry = _registries.get(model)
    return () if registry is None else tuple(registry.attachments)


def is_lost(model: Any) -> bool:
    """Whether `model` is a copy that has none of the predictors of its original."""
    registry = _registries.get(model)
    return registry is not None and registry.lost


class OwnSolves:
    """What the tools ask (`dovetail.core.foreign.Ties`)."""

    def refuse(self, parts: Iterable[Any]) -> None:
        """A `ModelError` where a part has predictors, or is a copy that has lost them."""
        for part in parts:
            require_not_lost((part,))
            names = [attached.name for attached in attached_to(part)]
            if names:
                raise ModelError(
                    f"predictors are attached to this model ({', '.join(names)}), and its own solver would "
                    "leave them out. Call dovetail.solve(model) instead; to solve without a predictor, call "
                    "remove() of what add_predictor_constr returned."
                )

    def copied(self, parts: Iterable[Any], copy: Any) -> None:
        """Note that the copy of a model with predictors has none of them."""
        if any(is_lost(part) or attached_to(part) for part in parts):
            registry_of(copy).lost = True


def require_not_lost(parts: Iterable[Any]) -> None:
    """Refuse to solve a copy as if its original had no predictors."""
    if any(map(is_lost, parts)):
        raise ModelError(
            "this model is a copy of one that predictors are attached to, and a copy has none of them. "
            "Attach them to the copy (add_predictor_constr), or solve the original with dovetail.solve; for "
            "a copy without predictors, call their remove() first."
        )
