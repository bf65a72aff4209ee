"""The words, numbers and signs of an .lp file, one after another.

Names like `x[0,1]`, which Gurobi gives by default and HiGHS takes for the beginning of a quadratic part.

HiGHS is given a copy of the file with `x(0,1)` in their place, which it takes for a name; what it read gets
the names of the file back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from dovetail.core.errors import ModelError
from dovetail.core.file_limits import Meter
from dovetail.core.mip import Mip
from dovetail.models.lp.program import LpProgram
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


_NAME = re.compile(NAME)
_ROUND = bytes.maketrans(b"[]", b"()")


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


@contextmanager
def without_brackets(path: Path, text: LpProgram, meter: Meter) -> Iterator[Path]:
    """A file that says the same and that HiGHS can read: the file itself where no name has brackets."""
    if not any(b"[" in name for names in (text.columns, text.labels) for name in names):
        yield path
        return
    with TemporaryDirectory(prefix="dovetail-") as folder:
        plain = Path(folder) / path.name
        with plain.open("wb") as file:
            for _, line in lines(path, meter):
                said = line.split(b"\\")[0]
                file.write(_NAME.sub(lambda found: found[0].translate(_ROUND), said) + b"\n")
        yield plain


def with_brackets(mip: Mip, text: LpProgram) -> Mip:
    """What HiGHS read, by the names of the file. Two that became one are one column, and disagree."""
    names, row_names = _renamed(mip.names, text.columns), _renamed(mip.row_names, text.labels)
    if names is mip.names and row_names is mip.row_names:
        return mip
    return replace(mip, names=names, row_names=row_names)


def _renamed(names: Sequence[str] | None, written: Iterable[bytes]) -> Sequence[str] | None:
    own = {name.translate(_ROUND).decode(): name.decode() for name in written if b"[" in name}
    return names if names is None or not own else [own.get(name, name) for name in names]
