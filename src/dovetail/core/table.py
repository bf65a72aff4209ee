"""A table of parts (methods, engines, predictors, ...), with one line for each part.

A line has the name of the part, its module and its purpose. A part is imported only on first use, so that
listing is fast and a missing library affects only the users of that part. `dovetail list`, the public names,
shell completion and messages about unknown names come from the tables. Registering a part
adds a line.
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
"""The type of the parts of a table."""
Recogniser = Callable[[object], bool]
"""Returns True for the objects that a part takes."""


def of_class(*names: str) -> Recogniser:
    """Recognise objects of the classes with these full names, and of derived classes. Classes are compared
    by name, so that no library is imported for the comparison."""

    def recognises(foreign: object) -> bool:
        return any(f"{cls.__module__}.{cls.__qualname__}" in names for cls in type(foreign).__mro__)

    return recognises


@dataclass(frozen=True)
class Part:
    """One line of a table."""

    name: str
    """The name that users write."""
    source: str | Callable[..., Any]
    """The place as "module:Name", or a function that makes the part."""
    text: str
    """Its purpose in one line."""
    library: str = ""
    """The distribution that the part needs beyond dovetail's requirements; alternatives are separated by
    "or"."""
    extra: str = ""
    """The extra of dovetail that installs the library, if there is one."""
    recognises: Recogniser | None = None
    """For families selected by an object of a library: whether the part takes this object."""

    def load(self) -> Any:
        """Import the part."""
        if not isinstance(self.source, str):
            return self.source
        module, _, name = self.source.partition(":")
        return attrgetter(name)(import_module(module))

    def availability(self) -> str:
        """The installed version of the library, or how to install it; empty if none is needed."""
        from importlib.metadata import PackageNotFoundError, version  # slow to import

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
        """The kind of part in messages, for example "method"."""
        self.title = title
        """The title of the family in lists."""
        self._otherwise = otherwise
        self._parts = {part.name: part for part in parts}

    def __getitem__(self, name: str) -> Part:
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, part: Part) -> None:
        """Register one more part; a name that is taken is refused."""
        if not isinstance(part.name, str) or not part.name:
            raise OptionError(f"the name of a {self.family} is {part.name!r}; give a word.")
        if part.name in self._parts:
            raise OptionError(f"{self.family} {part.name!r} exists already; choose another name.")
        if not isinstance(part.source, str) and not callable(part.source):
            raise OptionError(
                f'{self.family} {part.name!r}: {part.source!r} makes nothing; give a class, or "module:Name".'
            )
        self._parts[part.name] = part

    def load(self, name: str) -> Callable[..., Made]:
        """The class or function with that name; an unknown name raises an error that lists the known ones."""
        if name not in self._parts:
            known = ", ".join([*self._parts, *([self._otherwise] if self._otherwise else [])])
            meant = did_you_mean(name, self._parts) or "."
            raise OptionError(f"{self.family} {name!r} is not known; choose {known}{meant}")
        loaded: Callable[..., Made] = self._parts[name].load()
        return loaded

    def make(self, name: str) -> Made:
        """The part with this name, and with the options that belong to the name."""
        return self.load(name)()

    def recognised(self, foreign: object) -> str | None:
        """The name of the first part that takes the object `foreign`."""
        for part in self._parts.values():
            if part.recognises is not None and part.recognises(foreign):
                return part.name
        return None

    def public_names(self) -> dict[str, str]:
        """The classes of the parts, with their modules."""
        places = (part.source.partition(":") for part in self._parts.values() if isinstance(part.source, str))
        return {name: module for module, _, name in places if "." not in name}
