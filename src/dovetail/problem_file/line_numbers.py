"""On which line of a TOML file each of its keys and entries stands.

`tomllib` gives values without places. This goes through a text that tomllib has read, so that nothing has
to be checked again: it only tells strings, arrays, tables and comments apart, and counts.

A place is a path: names of tables and keys, and numbers of the entries of arrays:
``("predictor", 0, "inputs", 2)``.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator
from itertools import count

Path = tuple[str | int, ...]

BLANK = re.compile(r"[ \t]*")
BETWEEN = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
"""What may stand between entries: blanks, ends of lines, comments."""
KEY = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|[A-Za-z0-9_-]+")
STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'',
    re.DOTALL,
)
"""In three quotes first; its last two characters may be quotes too."""
PLAIN = re.compile(r"[^,\]}#\n]+")
"""A number, a date, a truth value: dates may have a blank inside."""


def line_numbers(text: str) -> dict[Path, int]:
    """The line, from 1, on which each table, key and entry begins; `text` must be valid TOML."""
    return _TomlScan(text.replace("\r\n", "\n")).run()


class _TomlScan:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._ends = [k for k, character in enumerate(text) if character == "\n"]
        self._lines: dict[Path, int] = {}
        self._tables: dict[Path, int] = {}
        """Arrays of tables so far, and how many tables each has."""

    def run(self) -> dict[Path, int]:
        prefix: Path = ()
        self._skip(BETWEEN)
        while self._at < len(self._text):
            if self._sees("["):
                prefix = self._header()
            else:
                self._pair(prefix)
            self._skip(BETWEEN)
        return self._lines

    def _header(self) -> Path:
        """The path of the table that ``[a.b]`` or ``[[a.b]]`` begins."""
        begin, many = self._at, self._text.startswith("[[", self._at)
        self._at += 2 if many else 1
        path: Path = ()
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

    def _pair(self, prefix: Path) -> None:
        begin, path = self._at, prefix
        for name in self._key():
            path = (*path, name)
            self._note(path, begin)
        self._at += 1  # =
        self._skip(BLANK)
        self._value(path)

    def _key(self) -> list[str]:
        """The names of a dotted key, up to what stands behind it."""
        names = []
        while True:
            self._skip(BLANK)
            word = self._skip(KEY)
            names.append(tomllib.loads(f"k = {word}")["k"] if word[0] in "\"'" else word)
            self._skip(BLANK)
            if not self._sees("."):
                return names
            self._at += 1

    def _value(self, path: Path) -> None:
        if self._sees("["):
            self._array(path)
        elif self._sees("{"):
            self._table(path)
        else:
            self._skip(STRING if self._text[self._at] in "\"'" else PLAIN)

    def _array(self, path: Path) -> None:
        for entry in self._entries("]"):
            self._note((*path, entry), self._at)
            self._value((*path, entry))

    def _table(self, path: Path) -> None:
        for _ in self._entries("}"):
            self._pair(path)

    def _entries(self, end: str) -> Iterator[int]:
        """Stands before each entry of an array or inline table in turn; then behind its end."""
        self._at += 1
        for entry in count():
            self._skip(BETWEEN)
            if self._sees(","):
                self._at += 1
                self._skip(BETWEEN)
            if self._sees(end):
                break
            yield entry
        self._at += 1

    def _sees(self, sign: str) -> bool:
        return self._text.startswith(sign, self._at)

    def _skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise ValueError(f"no TOML at character {self._at}")
        self._at = found.end()
        return found[0]

    def _note(self, path: Path, at: int) -> None:
        self._lines.setdefault(path, bisect_right(self._ends, at - 1) + 1)
