"""A table of parts: all the methods, or engines, or predictors ... that there are, one line for each.

A line says how a part is called, where it is and what it is for. The part itself is imported when it is
asked for, so that listing a family costs nothing, and a library that is not installed hurts only those who
want it. `dovetail list`, the package's public names, shell completion, docs/parts.md and the messages about
unknown names are derived from the tables; registering a part is adding its line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from typing import Any, Generic, TypeVar

from dovetail.core.errors import OptionError
from dovetail.core.words import did_you_mean

Made = TypeVar("Made")
"""What the parts of a table are, once they are made."""
Recogniser = Callable[[object], bool]
"""Says True to the objects meant, and False to any other."""


def of_class(*names: str) -> Recogniser:
    """Recognise objects of the classes with these full names, and of classes derived from them.

    A class is known by its module and name, so that no library is imported just to say that an object is not
    one of its own.
    """

    def recognises(foreign: object) -> bool:
        return any(f"{cls.__module__}.{cls.__qualname__}" in names for cls in type(foreign).__mro__)

    return recognises


@dataclass(frozen=True)
class Part:
    """One line of a table."""

    name: str
    """How users ask for it."""
    source: str | Callable[..., Any]
    """Where it is, as "module:Name", or what makes it, for a part that is there already."""
    text: str
    """What it is for, in one line."""
    library: str = ""
    """The distribution it needs besides dovetail's own requirements, or whose version users ask for; several
    that hold the same library with "or" between them."""
    extra: str = ""
    """The extra of dovetail that installs the library, where there is one."""
    recognises: Recogniser | None = None
    """For families that are found by an object of a foreign library: is this one meant?"""

    def load(self) -> Any:
        """What stands at its source, imported now."""
        if not isinstance(self.source, str):
            return self.source
        module, _, name = self.source.partition(":")
        return attrgetter(name)(import_module(module))

    def availability(self) -> str:
        """The version of the library that is installed, or how to install it; empty where none is needed."""
        from importlib.metadata import PackageNotFoundError, version  # slow to import, for lists only

        if not self.library:
            return ""
        names = self.library.split(" or ")
        for name in names:
            try:
                return f"{name} {version(name)}"
            except PackageNotFoundError:
                continue
        return f"not installed: pip install {names[0]}"


class Table(Mapping[str, Part], Generic[Made]):
    """The parts of one family by name, in the order in which they are shown and asked."""

    def __init__(self, family: str, title: str, *parts: Part, otherwise: str = "") -> None:
        self.family = family
        """What messages call one of them: "method"."""
        self.title = title
        """What lists call all of them."""
        self._otherwise = otherwise
        self._parts = {part.name: part for part in parts}

    def __getitem__(self, name: str) -> Part:
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, part: Part) -> None:
        """Register one more part; a name that is taken is refused, not replaced."""
        if not isinstance(part.name, str) or not part.name:
            raise OptionError(f"the name of a {self.family} is {part.name!r}; give a word.")
        if part.name in self._parts:
            raise OptionError(f"{self.family} {part.name!r} is there already; choose another name.")
        if not isinstance(part.source, str) and not callable(part.source):
            raise OptionError(
                f'{self.family} {part.name!r}: {part.source!r} makes nothing; give a class, or "module:Name".'
            )
        self._parts[part.name] = part

    def load(self, name: str) -> Callable[..., Made]:
        """The class or function of that name; an error that lists what there is, if there is none."""
        if name not in self._parts:
            known = ", ".join([*self._parts, *([self._otherwise] if self._otherwise else [])])
            meant = did_you_mean(name, self._parts) or "."
            raise OptionError(f"{self.family} {name!r} is not known; choose {known}{meant}")
        loaded: Callable[..., Made] = self._parts[name].load()
        return loaded

    def make(self, name: str) -> Made:
        """The part of that name with the options its name stands for."""
        return self.load(name)()

    def recognised(self, foreign: object) -> str | None:
        """The name of the first part that takes `foreign` for one of its own objects."""
        for part in self._parts.values():
            if part.recognises is not None and part.recognises(foreign):
                return part.name
        return None

    def public_names(self) -> dict[str, str]:
        """The classes of the parts, each with the module it is in."""
        places = (part.source.partition(":") for part in self._parts.values() if isinstance(part.source, str))
        return {name: module for module, _, name in places if "." not in name}
