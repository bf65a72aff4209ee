"""Short forms of variable names: ``x[*]`` is a row of features, ``x[{i}]`` one feature of each sample.

`*` stands for a whole number, and the variables come in the order of these numbers. A predictor takes its
features in one order only, so names with words in that place must be written out. `{i}` stands for any index
(no comma, no bracket). The outputs say which indices there are, and every index is one sample. A pattern
that is also the exact name of a variable means that variable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dovetail.core.errors import ModelError
from dovetail.core.words import did_you_mean

PLACEHOLDER = re.compile(r"\*|\{([A-Za-z_]\w*)\}")
WHOLE = re.compile(r"-?[0-9]+")
INDEX = r"[^\[\](),]+"


class NamedColumns:
    """The names of a model's variables, to look up names and patterns."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self._known = frozenset(names)

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def pattern(self, text: str) -> NamePattern | None:
        """The pattern in `text`, if it is one and not a variable's name."""
        return None if text in self._known or not PLACEHOLDER.search(text) else NamePattern(text, self)

    def require(self, name: str) -> None:
        """Refuse an unknown name."""
        if name not in self._known:
            raise ModelError(f"there is no variable {name!r}{did_you_mean(name, self.names) or '.'}")


@dataclass(frozen=True)
class _Match:
    key: tuple[str, ...]
    """The values of the {placeholders}."""
    numbers: tuple[str, ...]
    """The numbers at the *."""
    name: str


class NamePattern:
    """A name with placeholders, and its variables."""

    def __init__(self, text: str, columns: NamedColumns) -> None:
        self.text, self._columns = text, columns
        self._parts = tuple(m[1] or f"*{k}" for k, m in enumerate(PLACEHOLDER.finditer(text)))
        """The names of placeholders in order; a numbered star for each star."""
        self.placeholders = tuple(dict.fromkeys(part for part in self._parts if part[0] != "*"))
        self._found: dict[tuple[str, ...], list[str]] | None = None

    def columns(self, key: tuple[str, ...]) -> list[str]:
        """The variables for given values of the placeholders, in the order of the numbers at `*`."""
        if self._found is None:
            self._found = self._groups_by_placeholder()
        return self._found.get(key, [])

    def keys(self) -> list[tuple[str, ...]]:
        """The values of the placeholders, in the order of the variables."""
        self.columns(())
        assert self._found is not None
        return list(self._found)

    def filled(self, key: tuple[str, ...]) -> str:
        """The name for given values of the placeholders; stars stay."""
        values = dict(zip(self.placeholders, key, strict=True))
        return PLACEHOLDER.sub(lambda place: values.get(place[1] or "", place[0]), self.text)

    def _groups_by_placeholder(self) -> dict[tuple[str, ...], list[str]]:
        groups: dict[tuple[str, ...], list[_Match]] = {}
        for match in self._matches():
            groups.setdefault(match.key, []).append(match)
        for group in groups.values():
            group.sort(key=lambda match: (tuple(map(int, match.numbers)), match.name))
        return {key: [match.name for match in group] for key, group in groups.items()}

    def _matches(self) -> list[_Match]:
        greedy, lazy = self._expression(""), self._expression("?")
        found = []
        for name in self._columns.names:
            match = greedy.fullmatch(name)
            if match is None:
                continue
            other = lazy.fullmatch(name)
            assert other is not None
            if match.groups() != other.groups():
                raise ModelError(f"{self.text!r} can be read in two ways at {name!r}; write the names out.")
            found.append(self._match(name, match.groups()))
        return found

    def _match(self, name: str, values: tuple[str, ...]) -> _Match:
        """`values` are those of the placeholders at their first place, and of every star."""
        part = dict(zip(dict.fromkeys(self._parts), values, strict=True))
        numbers = tuple(value for kind, value in part.items() if kind[0] == "*")
        if not all(map(WHOLE.fullmatch, numbers)):
            raise ModelError(
                f"{self.text!r} has {name!r} among its variables, but * stands for whole numbers; write the "
                "names out, in the order in which the predictor takes them."
            )
        return _Match(tuple(part[kind] for kind in self.placeholders), numbers, name)

    def _expression(self, lazy: str) -> re.Pattern[str]:
        """A regular expression with a group for each placeholder; a second {i} repeats the first."""
        parts, at = [], 0
        groups: dict[str, int] = {}
        for k, place in enumerate(PLACEHOLDER.finditer(self.text)):
            parts.append(re.escape(self.text[at : place.start()]))
            at, part = place.end(), self._parts[k]
            parts.append(f"(?P=g{groups[part]})" if part in groups else f"(?P<g{k}>{INDEX}{lazy})")
            groups.setdefault(part, k)
        parts.append(re.escape(self.text[at:]))
        return re.compile("".join(parts))
