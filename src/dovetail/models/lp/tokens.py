"""The words, numbers and signs of an .lp file, one after another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dovetail.core.errors import ModelError
from dovetail.core.file_limits import Meter
from dovetail.models.text import lines

HEADER = re.compile(
    rb"\s*(?:(?P<objective>max(?:imi[sz]e|imum)?|min(?:imi[sz]e|imum)?)"
    rb"|(?P<rows>subject\s+to|such\s+that|s\.t\.|st)"
    rb"|(?P<bounds>bounds?)|(?P<general>gen(?:erals?)?)|(?P<binary>bin(?:ary|aries)?)"
    rb"|(?P<semi>semis?|semi-continuous)|(?P<end>end))(?=\s|$)(?!\s*:)",
    re.IGNORECASE,
)
"""The word that begins a section: the first of its line, and no label."""
_PLAIN = rb"[^\s+\-*^/\[\]<>=:|]"
NAME = _PLAIN + rb"+(?:\[" + _PLAIN + rb"+\]" + _PLAIN + rb"*)*"
"""Brackets belong to a name where nothing parts them from it and nothing is reckoned inside: x[0,1]."""
TOKEN = re.compile(
    rb"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<compare>[<>=]+)|(?P<sign>[+-])"
    rb"|(?P<colon>:+)|(?P<strange>[\[\]*^/|])|(?P<name>" + NAME + rb")|(?P<stop>$))"
)


class Token(NamedTuple):
    """A word, a number or a sign."""

    kind: str
    word: bytes
    line: int
    glued: bool
    """Whether nothing stands between it and the word before."""


class Tokens:
    """All of a file, one token ahead."""

    def __init__(self, path: Path, meter: Meter) -> None:
        self._meter = meter
        self._stream = self._split(path)
        self.next = Token("stop", b"", 0, False)
        self.behind = 0
        """The line of the last token that was taken."""
        self.take()

    def take(self) -> Token:
        """The next token, which is thereby behind."""
        taken, self.next = self.next, next(self._stream, self.next)
        self.behind = taken.line
        return taken

    def wrong(self, token: Token, what: str) -> ModelError:
        """The error that names the line of a token."""
        return ModelError(f"{self._meter.name} cannot be read as an LP file: line {token.line} {what}.")

    def wrong_here(self, what: str) -> ModelError:
        """The same for the next token."""
        return self.wrong(self.next, what)

    def empty(self) -> ModelError:
        """The error of a file in which nothing is said."""
        return ModelError(f"{self._meter.name} is empty, or all of it is comments: this is no model.")

    def _split(self, path: Path) -> Iterator[Token]:
        number = 0
        for number, line in lines(path, self._meter):
            line = line.split(b"\\")[0].rstrip()
            place = count = 0
            header = HEADER.match(line)
            if header is not None:
                kind = header.lastgroup or ""
                yield Token(kind, header[kind], number, False)
                place = header.end()
            while place < len(line):
                found = TOKEN.match(line, place)
                assert found is not None  # a name is whatever is left
                kind = found.lastgroup or ""
                count += 1
                if kind != "stop":
                    yield Token(kind, found[kind], number, found.start(kind) == place > 0)
                place = found.end()
            self._meter.add_elements(count, "the file names or numbers")
        yield Token("stop", b"", number, False)
