"""Recognising foreign objects without importing the library they come from.

A class is known by its module and name, so that neither torch nor anything else is imported just to say
that an object is not one of its own.
"""

from __future__ import annotations

from collections.abc import Callable

Recogniser = Callable[[object], bool]
"""Says True to the objects meant, and False to any other."""


def of_class(*names: str) -> Recogniser:
    """Recognise objects of the classes with these full names, and of classes derived from them."""

    def recognises(foreign: object) -> bool:
        return any(f"{cls.__module__}.{cls.__qualname__}" in names for cls in type(foreign).__mro__)

    return recognises
