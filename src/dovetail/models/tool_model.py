"""Wrappers of tools' own functions, and keys for their variables.

A tool's own solve would ignore predictors without a word. Its functions are therefore wrapped, once per
process, when the first predictor is attached to a model of that tool. Models without predictors are solved
and copied as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any
from weakref import ref


def ask_first(owner: type, names: Iterable[str], ask: Callable[..., None]) -> None:
    """Make methods of a class call `ask` with their arguments first."""

    def asking(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def asked(*args: Any, **options: Any) -> Any:
            ask(*args, **options)
            return method(*args, **options)

        return asked

    _wrap(owner, names, asking)


def tell_copies(owner: type, names: Iterable[str], tell: Callable[[Any, Any], None]) -> None:
    """Make methods of a class that copy a model call `tell` with the model and the copy."""

    def telling(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def told(model: Any, *args: Any, **options: Any) -> Any:
            made = method(model, *args, **options)
            tell(model, made)
            return made

        return told

    _wrap(owner, names, telling)


def _wrap(owner: type, names: Iterable[str], wrapper: Callable[[Any], Any]) -> None:
    """Replace the methods of the class itself, once."""
    for name in names:
        method = vars(owner).get(name)
        if method is not None and not hasattr(method, "_of_dovetail"):
            wrapped = wrapper(method)
            wrapped._of_dovetail = True
            setattr(owner, name, wrapped)


class Identity:
    """A key for a variable that cannot be hashed or compared, for instance because == makes a constraint.
    Equal only to a key of the same object, which the key does not keep alive."""

    __slots__ = ("_number", "_object")

    def __init__(self, thing: Any) -> None:
        self._number, self._object = id(thing), ref(thing)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Identity)
            and self._number == other._number
            and self._object() is other._object()  # Python reuses the id of an object that no longer exists
        )

    @property
    def thing(self) -> Any:
        """The object, or None if it is gone."""
        return self._object()
