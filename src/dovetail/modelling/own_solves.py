"""Why a tool may not solve a model that predictors are attached to: it would leave them out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dovetail.core.errors import ModelError
from dovetail.modelling.registry import attached_to, is_lost, registry_of


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
