"""A peer's functions, all made from one table.

They differ in where they stand, in what they call their parameters, and in whether a classifier means its
class or its numbers; what they do is `add_predictor_constr`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

from dovetail.modelling.add_predictor_constr import add_predictor_constr
from dovetail.modelling.peer_options import PeerOutputType
from dovetail.modelling.predictor_constr import PredictorConstr


@dataclass(frozen=True)
class PeerFunction:
    """One function of a peer's."""

    name: str
    module: str
    """Where it stands, below the peer's package."""
    predictor: str
    """What it calls the predictor."""
    constr: str
    """The class of what it gives back, for those who name it."""
    takes: tuple[str, ...] = ()
    """The classes that the peer sends to it."""
    options: tuple[str, ...] = ()
    """Parameters behind the peer's common ones that may be given by position."""
    output_type: PeerOutputType = None
    """What its outputs are unless the caller says; None where the predictor decides."""


@dataclass(frozen=True)
class Peer:
    """What all functions of one peer have in common."""

    model: str
    """What they call the model."""
    options: tuple[str, ...]
    """Parameters of all of them behind the outputs."""
    kind: type[PredictorConstr]
    """The class of what they give back."""
    names_it: str
    """The option that names a block, which need not be free: the peers number them."""

    def function(self, entry: PeerFunction) -> Callable[..., PredictorConstr]:
        """The function, with the peer's own signature."""
        signature = self._signature(entry)

        def add(*args: Any, **kwargs: Any) -> PredictorConstr:
            given = dict(signature.bind(*args, **kwargs).arguments)
            model, predictor = given.pop(self.model), given.pop(entry.predictor)
            inputs, outputs = given.pop("input_vars"), given.pop("output_vars", None)
            options = given.pop("options", {}) | {k: v for k, v in given.items() if v is not None}
            options.setdefault("output_type", entry.output_type)
            options["unique_naming_prefix"] = str(options.pop(self.names_it, ""))
            return add_predictor_constr(model, predictor, inputs, outputs, **options).held_as(self.kind)

        add.__name__ = add.__qualname__ = entry.name
        add.__doc__ = f"Tie outputs to inputs through a predictor: dovetail.add_predictor_constr.\n\n{_TAKEN}"
        add.__signature__ = signature  # type: ignore[attr-defined]
        return add

    def _signature(self, entry: PeerFunction) -> Signature:
        needed = [self.model, entry.predictor, "input_vars"]
        said = ["output_vars", *self.options, *entry.options]
        either = Parameter.POSITIONAL_OR_KEYWORD
        return Signature(
            [
                *(Parameter(name, either) for name in needed),
                *(Parameter(name, either, default=None) for name in said),
                Parameter("options", Parameter.VAR_KEYWORD),
            ]
        )

    def modules(self, table: Iterable[PeerFunction]) -> dict[str, dict[str, Any]]:
        """All functions of a table by module, and the classes of what they give back."""
        found: dict[str, dict[str, Any]] = {}
        for entry in table:
            names = {entry.name: self.function(entry), entry.constr: self.kind}
            found.setdefault(entry.module, {}).update(names)
        return found


_TAKEN = "Options that say how a network is written out are taken and mean nothing: docs/migration.md."
