"""A peer's functions, all made from one table.

They differ in where they stand, in what they call their parameters, and in whether a classifier means its
class or its numbers; what they do is `add_predictor_constr`.

Modules made from a table of names, under a package of ours and called as a peer's modules are.

A file for each of them would say one and the same thing forty times.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from inspect import Parameter, Signature
from types import ModuleType
from typing import Any

from dovetail.modelling.add_predictor_constr import PeerOutputType, add_predictor_constr
from dovetail.modelling.predictor_constr import PredictorConstr


def publish(package: str, names: Mapping[str, Mapping[str, Any]]) -> None:
    """Make the modules of `package`, by their path below it, with the names that each of them has.

    A name stands in the module it was written for and in all packages above that, as peers re-export them;
    `package` itself is a file, which says what it holds.
    """
    for path, own in names.items():
        parts = path.split(".")
        for depth in range(len(parts), 0, -1):
            module = _module(package, ".".join(parts[:depth]))
            for name, value in own.items():
                setattr(module, name, value)


def _module(package: str, path: str) -> ModuleType:
    whole = f"{package}.{path}"
    if whole in sys.modules:
        return sys.modules[whole]
    made = ModuleType(whole, f"`{path}` of the peer, as `{package}` has it.")
    made.__path__ = []  # a package, so that modules below it can be imported
    sys.modules[whole] = made
    above, _, name = path.rpartition(".")
    setattr(_module(package, above) if above else sys.modules[package], name, made)
    return made


def _itself(predictor: Any) -> Any:
    return predictor


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
    meant: Callable[[Any], Any] = _itself
    """What gives the outputs that the peer means, where the predictor as dovetail knows it gives others."""


@dataclass(frozen=True, eq=False)
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
    table: tuple[PeerFunction, ...]
    """All of them."""

    @cached_property
    def classes(self) -> dict[str, type[PredictorConstr]]:
        """What the functions give back, by the peer's names for it."""
        names = dict.fromkeys(entry.constr for entry in self.table)
        return {name: type(name, (self.kind,), {"__doc__": self.kind.__doc__}) for name in names}

    def entry_of(self, predictor: Any) -> PeerFunction | None:
        """The function that the peer sends a predictor to, by its class and those above it."""
        for cls in type(predictor).__mro__:
            library = cls.__module__.split(".")[0]
            for entry in self.table:
                if cls.__name__ in entry.takes and entry.module.split(".")[0] == library:
                    return entry
        return None

    def function(self, entry: PeerFunction) -> Callable[..., PredictorConstr]:
        """The function, with the peer's own signature."""
        signature = self._signature(entry)

        def add(*args: Any, **kwargs: Any) -> PredictorConstr:
            given = dict(signature.bind(*args, **kwargs).arguments)
            model, predictor = given.pop(self.model), given.pop(entry.predictor)
            inputs, outputs = given.pop("input_vars"), given.pop("output_vars", None)
            options = given.pop("options", {}) | {k: v for k, v in given.items() if v is not None}
            if "predict_function" not in options:  # which says what the outputs are, too
                options.setdefault("output_type", entry.output_type)
            options["unique_naming_prefix"] = str(options.pop(self.names_it, ""))
            made = add_predictor_constr(model, entry.meant(predictor), inputs, outputs, **options)
            made.predictor = predictor
            return made.held_as(self.classes.get(entry.constr, self.kind))

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

    @cached_property
    def functions(self) -> dict[str, Callable[..., PredictorConstr]]:
        """All of them by name."""
        return {entry.name: self.function(entry) for entry in self.table}

    def modules(self) -> dict[str, dict[str, Any]]:
        """The functions by module, and the classes of what they give back."""
        found: dict[str, dict[str, Any]] = {}
        for entry in self.table:
            names = {entry.name: self.functions[entry.name], entry.constr: self.classes[entry.constr]}
            found.setdefault(entry.module, {}).update(names)
        return found

    def by_class(self, library: str) -> dict[str, Callable[..., PredictorConstr]]:
        """The functions that the peer chooses by the class of a predictor."""
        own = (entry for entry in self.table if entry.module.startswith(library))
        return {kind: self.functions[entry.name] for entry in own for kind in entry.takes}


_TAKEN = "Options that say how a network is written out are taken and mean nothing: docs/migration.md."
