"""A TOML file: its values, and the line of each value, for messages that name the line.

`tomllib` returns values without line numbers. `line_numbers` scans a text that tomllib has accepted, so that
syntax is not checked again: it only separates strings, arrays, tables and comments, and counts lines.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from dovetail.core.errors import DovetailError, OptionError
from dovetail.core.files import text_of

Place = tuple[str | int, ...]
"""A path of table names, keys and array indices: ``("predictor", 0, "inputs", 2)``."""

LARGEST = 1 << 26
"""Largest number of bytes: a million written names."""


@dataclass(frozen=True, eq=False)
class Document:
    """The values of a TOML file, and their lines."""

    name: str
    """The name in messages."""
    folder: Path
    """The folder to which file names are relative."""
    content: dict[str, Any]
    lines: dict[Place, int]
    """The file; empty for a command-line option."""

    @classmethod
    def read(cls, path: Path) -> Document:
        """The file, or an error that says why it cannot be read."""
        text = text_of(path, LARGEST)
        try:
            return cls(str(path), path.parent, tomllib.loads(text), line_numbers(text))
        except tomllib.TOMLDecodeError as reason:
            raise OptionError(f"{path} is no TOML: {reason}.") from None
        except (RecursionError, ValueError):  # of tomllib, and of a number with too many digits
            raise OptionError(
                f"{path} is no TOML that can be read: it is nested too deeply, or a number is too long."
            ) from None

    def where(self, place: Place) -> str:
        """The line of a place; for missing keys, the line of their table."""
        while place and place not in self.lines:
            place = place[:-1]
        return f"{self.name}, line {self.lines[place]}" if place else self.name

    def wrong(self, place: Place, what: str) -> OptionError:
        """An error that names a place."""
        return OptionError(f"{self.where(place)}: {what}")

    @contextmanager
    def at(self, place: Place) -> Iterator[None]:
        """Errors raised inside name the place."""
        try:
            yield
        except DovetailError as reason:
            raise type(reason)(f"{self.where(place)}: {reason}") from reason

    def file(self, place: Place, name: str) -> Path:
        """An existing file, relative to the folder of this one."""
        path = self.folder / name
        if not path.is_file():
            raise self.wrong(place, f"{path} is no file." if path.exists() else f"there is no file {path}.")
        return path


BLANK = re.compile(r"[ \t]*")
BLANKS_AND_COMMENTS = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
"""Text that may stand between entries: blanks, line ends, comments."""
KEY = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|[A-Za-z0-9_-]+")
STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'',
    re.DOTALL,
)
"""Strings, those in three quotes first; their last two characters may be quotes too."""
PLAIN = re.compile(r"[^,\]}#\n]+")
"""A number, date or boolean; dates may contain a blank."""


def line_numbers(text: str) -> dict[Place, int]:
    """The line, from 1, of each table, key and entry; `text` must be valid TOML."""
    return _TomlScan(text.replace("\r\n", "\n")).run()


class _TomlScan:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._ends = [k for k, character in enumerate(text) if character == "\n"]
        self._lines: dict[Place, int] = {}
        self._tables: dict[Place, int] = {}
        """Arrays of tables so far, with the number of their tables."""

    def run(self) -> dict[Place, int]:
        prefix: Place = ()
        self._skip(BLANKS_AND_COMMENTS)
        while self._at < len(self._text):
            if self._next_is("["):
                prefix = self._header()
            else:
                self._pair(prefix)
            self._skip(BLANKS_AND_COMMENTS)
        return self._lines

    def _header(self) -> Place:
        """The path of the table after ``[a.b]`` or ``[[a.b]]``."""
        begin, many = self._at, self._text.startswith("[[", self._at)
        self._at += 2 if many else 1
        path: Place = ()
        for name in self._key():
            if path in self._tables:
                path = (*path, self._tables[path] - 1)
            path = (*path, name)
            self._note(path, begin)
        self._at += 2 if many else 1
        if not many:
            return path
        self._tables[path] = self._tables.get(path, 0) + 1
        path = (*path, self._tables[path] - 1)
        self._note(path, begin)
        return path

    def _pair(self, prefix: Place) -> None:
        begin, path = self._at, prefix
        for name in self._key():
            path = (*path, name)
            self._note(path, begin)
        self._at += 1  # =
        self._skip(BLANK)
        self._value(path)

    def _key(self) -> list[str]:
        """The names of a dotted key."""
        names = []
        while True:
            self._skip(BLANK)
            word = self._skip(KEY)
            names.append(tomllib.loads(f"k = {word}")["k"] if word[0] in "\"'" else word)
            self._skip(BLANK)
            if not self._next_is("."):
                return names
            self._at += 1

    def _value(self, path: Place) -> None:
        if self._next_is("["):
            self._array(path)
        elif self._next_is("{"):
            self._table(path)
        else:
            self._skip(STRING if self._text[self._at] in "\"'" else PLAIN)

    def _array(self, path: Place) -> None:
        for entry in self._entries("]"):
            self._note((*path, entry), self._at)
            self._value((*path, entry))

    def _table(self, path: Place) -> None:
        for _ in self._entries("}"):
            self._pair(path)

    def _entries(self, end: str) -> Iterator[int]:
        """Iterates over the entries of an array or inline table, positioned before each; finally after its
        end."""
        self._at += 1
        for entry in count():
            self._skip(BLANKS_AND_COMMENTS)
            if self._next_is(","):
                self._at += 1
                self._skip(BLANKS_AND_COMMENTS)
            if self._next_is(end):
                break
            yield entry
        self._at += 1

    def _next_is(self, sign: str) -> bool:
        return self._text.startswith(sign, self._at)

    def _skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise ValueError(f"no TOML at character {self._at}")
        self._at = found.end()
        return found[0]

    def _note(self, path: Place, at: int) -> None:
        self._lines.setdefault(path, bisect_right(self._ends, at - 1) + 1)
