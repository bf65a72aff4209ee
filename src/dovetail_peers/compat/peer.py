"""The functions of a peer, all made from one table.

They differ in their module, in the names of their parameters, and in whether a classifier gives its class or
its numbers; all call `add_predictor_constr`.

Modules made from a table of names, under a package of ours and called as a peer's modules are.

A file for each function would repeat the same text forty times.
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
    """Make the modules of `package`, by their path below it, with the names in each.

    A name is in the module it was defined in and in all packages above, as peers re-export it; `package`
    itself is a file, which lists its names.
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
    """A function of a peer."""

    name: str
    module: str
    """Its module, below the peer's package."""
    predictor: str
    """The name of its predictor parameter."""
    constr: str
    """The class of its result, for programs that name it."""
    takes: tuple[str, ...] = ()
    """The classes of predictors for which the peer uses it."""
    options: tuple[str, ...] = ()
    """Parameters after the peer's common ones that may be given by position."""
    output_type: PeerOutputType = None
    """The output type unless the caller states one; None if the predictor decides."""
    meant: Callable[[Any], Any] = _itself
    """Converts the predictor to one with the peer's outputs, if dovetail's outputs differ."""


@dataclass(frozen=True, eq=False)
class Peer:
    """The common properties of all functions of one peer."""

    model: str
    """The name of their model parameter."""
    options: tuple[str, ...]
    """Parameters of all functions after the outputs."""
    kind: type[PredictorConstr]
    """The class of their results."""
    names_it: str
    """The option with a block's name, which may be taken: the peers number them."""
    table: tuple[PeerFunction, ...]
    """All functions."""

    @cached_property
    def classes(self) -> dict[str, type[PredictorConstr]]:
        """The classes of the results, by the peer's names."""
        names = dict.fromkeys(entry.constr for entry in self.table)
        return {name: type(name, (self.kind,), {"__doc__": self.kind.__doc__}) for name in names}

    def entry_of(self, predictor: Any) -> PeerFunction | None:
        """The function that the peer uses for a predictor, by its class and base classes."""
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
            if "predict_function" not in options:  # it also determines the outputs
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
        """All functions by name."""
        return {entry.name: self.function(entry) for entry in self.table}

    def modules(self) -> dict[str, dict[str, Any]]:
        """The functions by module, and the classes of their results."""
        found: dict[str, dict[str, Any]] = {}
        for entry in self.table:
            names = {entry.name: self.functions[entry.name], entry.constr: self.classes[entry.constr]}
            found.setdefault(entry.module, {}).update(names)
        return found

    def by_class(self, library: str) -> dict[str, Callable[..., PredictorConstr]]:
        """The functions that the peer chooses by the class of a predictor."""
        own = (entry for entry in self.table if entry.module.startswith(library))
        return {kind: self.functions[entry.name] for entry in own for kind in entry.takes}


_TAKEN = "Options that say how a network is written out are accepted without effect: docs/migration.md."
