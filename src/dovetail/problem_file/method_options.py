"""The method that a problem file asks for, made with the options it gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dovetail.core.errors import DovetailError, OptionError
from dovetail.core.suggestion import did_you_mean
from dovetail.methods import METHODS
from dovetail.nn import SUB_SOLVERS
from dovetail.problem_file.document import Document, Place

if TYPE_CHECKING:
    from dovetail.run.context import Method

Makers = Mapping[str, Callable[[], Callable[..., Any]]]
"""What imports the class, or the function, that makes an object, by the name users know it by."""
DEFAULT = "auto"
"""As `dovetail.solve` has it."""


def read_method(document: Document) -> Method:
    """The object that the table [method] describes."""
    table = document.content.get("method", {})
    method: Method = _made(document, ("method",), table, DEFAULT, _methods())
    return method


def _methods() -> Makers:
    return {name: part.load for name, part in METHODS.items()}


def _made(
    document: Document,
    place: Place,
    table: Mapping[str, Any],
    usual: str,
    known: Mapping[str, Callable[..., Any]],
) -> Any:
    """An object with options, which may be objects with options themselves."""
    name = table.get("name", usual)
    with document.at((*place, "name")):
        make = _known(name, known)
    options = {key: value for key, value in table.items() if key != "name"}
    fields = inspect.signature(make).parameters
    for key, value in options.items():
        if key not in fields:
            choice = f"; its options are {', '.join(fields)}." if fields else "; it has none."
            meant = did_you_mean(key, fields) or choice
            raise document.wrong((*place, key), f"{name} has no option {key!r}{meant}")
        if isinstance(value, dict):
            options[key] = _made(document, (*place, key), value, "", _parts())
    try:
        return _call(make, options)
    except DovetailError as reason:
        raise document.wrong(_at_fault(make, options, place), str(reason)) from reason


def _known(name: Any, known: Makers) -> Callable[..., Any]:
    """What makes the object of that name; it is imported now."""
    if not isinstance(name, str) or name not in known:
        meant = did_you_mean(name, known) or f"; choose {', '.join(known)}."
        raise OptionError(f"name is {name!r}{meant}")
    return known[name]()


def _parts() -> Makers:
    """What an option of a method can be, besides a number or a word."""
    from dovetail.coupling.penalty import BalancedPenalty, FixedPenalty, IncreasingPenalty

    rules: dict[str, Callable[..., Any]] = {
        rule.__name__: lambda rule=rule: rule for rule in (BalancedPenalty, FixedPenalty, IncreasingPenalty)
    }
    return {name: part.load for name, part in SUB_SOLVERS.items()} | rules


def _call(make: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    try:
        return make(**options)
    except (TypeError, ValueError) as reason:
        if isinstance(reason, DovetailError):
            raise
        raise OptionError(str(reason)) from reason


def _at_fault(make: Callable[..., Any], options: Mapping[str, Any], place: Place) -> Place:
    """Where to say that the options cannot be: at the first that cannot be by itself, or at all of them."""
    for key, value in options.items():
        try:
            _call(make, {key: value})
        except DovetailError:
            return (*place, key)
    return place
