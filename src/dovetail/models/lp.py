"""A reader of .lp files beside HiGHS's own, for one purpose: both must say the same.

HiGHS takes `2 a + 3 a` for 3 a, drops a constant on the left of a row, and reads `nan`. So the text is read
here too, by a narrow grammar (linear rows with one limit, bounds, integers, binaries, a closing `end`); what
is outside the grammar is refused with its line, and what HiGHS made of the file must be what was read here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.errors import ModelError
from dovetail.core.file_limits import Meter
from dovetail.core.mip import INFINITY, Mip
from dovetail.models.text import NAME, lines, shown

HEADER = re.compile(
    rb"\s*(?:(?P<objective>max(?:imi[sz]e|imum)?|min(?:imi[sz]e|imum)?)"
    rb"|(?P<rows>subject\s+to|such\s+that|s\.t\.|st)"
    rb"|(?P<bounds>bounds?)|(?P<general>gen(?:erals?)?)|(?P<binary>bin(?:ary|aries)?)"
    rb"|(?P<semi>semis?|semi-continuous)|(?P<end>end))(?=\s|$)(?!\s*:)",
    re.IGNORECASE,
)
"""The word that begins a section: the first of its line, and no label."""
TOKEN = re.compile(
    rb"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<compare>[<>=]+)|(?P<sign>[+-])"
    rb"|(?P<colon>:+)|(?P<strange>[\[\]*^/|])|(?P<name>[^\s+\-*^/\[\]<>=:|]+)|(?P<stop>$))"
)
ORDER = ("objective", "rows", "bounds", "general", "binary", "semi", "end")
TOLERANCE = 1e-6
"""By how much a whole number may miss a limit of an integer column."""
INFINITE = (b"inf", b"infinity")
RESERVED = (*INFINITE, b"nan", b"free")
"""Words that some reader takes for a number; no column is called so."""


@dataclass
class Row:
    """coefficients, a sign (<=, >= or =), and the number behind it."""

    coefficients: dict[bytes, float]
    compare: bytes
    limit: float


@dataclass
class Text:
    """What an .lp file says."""

    maximises: bool = False
    cost: dict[bytes, float] = field(default_factory=dict)
    offset: float = 0.0
    rows: list[Row] = field(default_factory=list)
    lower: dict[bytes, float] = field(default_factory=dict)
    upper: dict[bytes, float] = field(default_factory=dict)
    """Limits that are given; 0 and infinity are those of all others."""
    columns: dict[bytes, None] = field(default_factory=dict)
    """In the order of their first appearance."""
    integer: set[bytes] = field(default_factory=set)
    binary: set[bytes] = field(default_factory=set)

    def limits(self, column: bytes) -> tuple[float, float]:
        """What a column may be."""
        high = 1.0 if column in self.binary else math.inf
        return self.lower.get(column, 0.0), self.upper.get(column, high)

    def agrees(self, mip: Mip) -> bool:
        """Whether a program is the one in the text."""
        if mip.names is None or {name.encode() for name in mip.names} != self.columns.keys():
            return False
        if mip.n_rows != len(self.rows) or (mip.sense == "max") != self.maximises:
            return False
        names = [name.encode() for name in mip.names]
        return (
            _close(mip.cost, [self.cost.get(name, 0.0) for name in names])
            and _close(np.array([mip.offset]), [self.offset])
            and self._agrees_on_columns(mip, names)
            and self._agrees_on_rows(mip, {name: j for j, name in enumerate(names)})
        )

    def _agrees_on_columns(self, mip: Mip, names: list[bytes]) -> bool:
        whole = np.array([name in self.integer or name in self.binary for name in names])
        low, high = np.array([self.limits(name) for name in names]).T
        if not np.array_equal(whole, mip.integer):
            return False
        lower, upper = _unrounded(mip.lower, low, whole), -_unrounded(-mip.upper, -high, whole)
        return _close(lower, low) and _close(upper, high)

    def _agrees_on_rows(self, mip: Mip, place: dict[bytes, int]) -> bool:
        compare = np.array([row.compare for row in self.rows], dtype=object)
        limit = np.array([row.limit for row in self.rows], dtype=np.float64)
        entries = [
            (i, place[name], value)
            for i, row in enumerate(self.rows)
            for name, value in row.coefficients.items()
            if value != 0.0
        ]
        row_of, column_of, values = zip(*entries, strict=True) if entries else ((), (), ())
        A = sp.csr_array((values, (row_of, column_of)), shape=mip.A.shape, dtype=np.float64)
        same = np.array_equal(A.indptr, mip.A.indptr) and np.array_equal(A.indices, mip.A.indices)
        return (
            same
            and _close(mip.A.data, A.data)
            and _close(mip.row_lower, np.where(compare == b"<=", -np.inf, limit))
            and _close(mip.row_upper, np.where(compare == b">=", np.inf, limit))
        )


def _unrounded(theirs: FloatArray, ours: FloatArray, whole: BoolArray) -> FloatArray:
    """Limits from below, as they were before a program rounded those of its integers up."""
    rounded = whole & (np.ceil(ours - TOLERANCE) <= theirs) & (theirs <= np.ceil(ours))
    return np.where(rounded, ours, theirs)


def _close(theirs: FloatArray, ours: ArrayLike) -> bool:
    """The same to the last digits that two ways of reading a number may differ in."""
    ours = np.asarray(ours, dtype=np.float64)
    ours = np.where(np.abs(ours) >= INFINITY, np.copysign(np.inf, ours), ours)
    return np.allclose(theirs, ours, rtol=1e-12, atol=0.0)


class _Token(NamedTuple):
    kind: str
    word: bytes
    line: int
    glued: bool
    """Whether nothing stands between it and the word before."""


def read_text(path: Path, meter: Meter) -> Text:
    """What an .lp file says; a `ModelError` names the first line outside the grammar."""
    return _Parser(path, meter).run()


class _Parser:
    """One pass over the tokens, one token ahead."""

    def __init__(self, path: Path, meter: Meter) -> None:
        self._meter = meter
        self._tokens = self._split(path)
        self._next = _Token("stop", b"", 0, False)
        self._text = Text()
        self._labels: set[bytes] = set()
        self._behind = 0
        """The line of the last token that was taken."""

    def run(self) -> Text:
        self._take()
        seen: list[str] = []
        readers = {
            "objective": self._objective, "rows": self._rows, "bounds": self._bounds,
            "general": self._general, "binary": self._binary, "semi": self._semi, "end": self._end,
        }  # fmt: skip
        while self._next.kind != "stop":
            token = self._take()
            if token.kind not in readers:
                raise self._wrong(token, f"has {shown(token.word)} where no section is")
            if token.kind in seen or (seen and seen[-1] == "end"):
                raise self._wrong(token, f"begins {shown(token.word)} a second time or behind the end")
            if not seen and token.kind != "objective":
                raise self._wrong(token, "begins without an objective: min or max comes first")
            seen.append(token.kind)
            if token.kind == "objective":
                self._text.maximises = token.word.lower().startswith(b"max")
            readers[token.kind]()
        if not seen:
            raise self._wrong(self._next, "is the last, and there are no columns: this is no model")
        if seen[-1] != "end":
            raise self._wrong(self._next, "is the last, and it is no 'end': the file is cut short")
        return self._text

    # Tokens

    def _split(self, path: Path) -> Iterator[_Token]:
        number = 0
        for number, line in lines(path, self._meter):
            line = line.split(b"\\")[0].rstrip()
            place = count = 0
            header = HEADER.match(line)
            if header is not None:
                kind = header.lastgroup or ""
                yield _Token(kind, header[kind], number, False)
                place = header.end()
            while place < len(line):
                found = TOKEN.match(line, place)
                assert found is not None  # a name is whatever is left
                kind = found.lastgroup or ""
                count += 1
                if kind != "stop":
                    yield _Token(kind, found[kind], number, found.start(kind) == place > 0)
                place = found.end()
            self._meter.add_elements(count, "the file names or numbers")
        yield _Token("stop", b"", number, False)

    def _take(self) -> _Token:
        taken, self._next = self._next, next(self._tokens, self._next)
        self._behind = taken.line
        return taken

    def _wrong(self, token: _Token, what: str) -> ModelError:
        return ModelError(f"{self._meter.name} cannot be read as an LP file: line {token.line} {what}.")

    # Parts

    def _sign(self) -> float:
        sign = 1.0
        while self._next.kind == "sign":
            sign *= -1.0 if self._take().word == b"-" else 1.0
        return sign

    def _number(self) -> float:
        token = self._take()
        if self._next.glued and self._next.kind in ("number", "name"):
            start = self._next.word[:1]
            if self._next.kind == "number" or start in b".,eEdD" or (token.word == b"0" and start in b"xX"):
                raise self._wrong(token, f"has {shown(token.word + self._next.word)}, which is no number")
        value = float(token.word)
        if math.isinf(value):
            raise self._wrong(token, f"has {shown(token.word)}, which is beyond all numbers")
        return value

    def _name(self) -> bytes:
        token = self._take()
        if token.kind != "name" or token.word.lower() in RESERVED or token.word[:1] == b".":
            raise self._wrong(token, f"has {shown(token.word)} where the name of a column must be")
        return self._known(token.word)

    def _known(self, name: bytes) -> bytes:
        if name not in self._text.columns:
            self._meter.add_elements(NAME, "the file names or numbers")
            self._text.columns[name] = None
        return name

    def _limit(self) -> float:
        """The number behind (or before) a comparison, which may be infinite."""
        sign = self._sign()
        if self._next.kind == "name" and self._next.word.lower() in INFINITE:
            self._take()
            return sign * math.inf
        if self._next.kind != "number":
            raise self._wrong(self._next, f"has {shown(self._next.word)} where a number must be")
        return sign * self._number()

    def _compare(self) -> bytes:
        token = self._take()
        if token.kind != "compare" or token.word not in (b"<=", b">=", b"="):
            raise self._wrong(token, f"has {shown(token.word)} where <=, >= or = must be")
        return token.word

    def _sum(self, first: bytes | None, what: str) -> tuple[dict[bytes, float], float | None]:
        """Terms, and the constant among them if there is one; `first` is a name that was taken already."""
        found: dict[bytes, float] = {} if first is None else {first: 1.0}
        constant = None
        begins = first is None
        while self._next.kind in ("sign", "number", "name", "strange"):
            if not begins and self._next.kind not in ("sign", "strange"):
                raise self._wrong(self._next, f"has no sign before {shown(self._next.word)}")
            name, value = self._term(what)
            if name is None and constant is None:
                constant = value
            elif name is None or name in found:
                again = "a number" if name is None else shown(name)
                raise self._wrong(
                    self._next, f"or the one before has {again} twice in one {what}; add them up"
                )
            else:
                found[name] = value
            begins = False
        return found, constant

    def _term(self, what: str) -> tuple[bytes | None, float]:
        """A column and its coefficient; or no column, and a number."""
        value = self._sign()
        if self._next.kind == "number":
            value *= self._number()
            if self._next.kind != "name":
                return None, value
        if self._next.kind == "strange":
            raise self._wrong(
                self._next, f"has {shown(self._next.word)}: a quadratic {what}, or no sum of columns"
            )
        return self._name(), value

    # Sections

    def _label(self, *, required: bool) -> bytes | None:
        """Take a label; or give back the name of the column that it turned out to be."""
        if self._next.kind != "name":
            return None
        token = self._take()
        if self._next.kind == "colon":
            colon = self._take()
            if colon.word != b":" or token.word in self._labels:
                raise self._wrong(token, f"has the label {shown(token.word)} a second time, or '::'")
            self._labels.add(token.word)
            return None
        if required:
            raise self._wrong(token, "begins a second row; give each a line of its own")
        if token.word.lower() in RESERVED:
            raise self._wrong(token, f"has {shown(token.word)} where the name of a column must be")
        return self._known(token.word)

    def _objective(self) -> None:
        self._text.cost, constant = self._sum(self._label(required=False), "objective")
        self._text.offset = constant or 0.0

    def _rows(self) -> None:
        while self._next.kind in ("sign", "number", "name", "strange", "compare", "colon"):
            on_same_line = bool(self._text.rows) and self._next.line == self._behind
            first = self._label(required=on_same_line)
            coefficients, constant = self._sum(first, "row")
            if constant is not None:
                raise self._wrong(
                    self._next,
                    f"or the one before has the number {constant:g} among the columns of a row: numbers "
                    "stand behind the sign, and a row with two limits is written as two rows",
                )
            if not coefficients:
                raise self._wrong(self._next, "or the one before has a row without columns")
            compare = self._compare()
            self._meter.add_elements(NAME, "the file names or numbers")
            self._text.rows.append(Row(coefficients, compare, self._limit()))

    def _bounds(self) -> None:
        while self._next.kind in ("sign", "number", "name"):
            if self._next.kind == "name" and self._next.word.lower() not in INFINITE:
                name = self._name()
                if self._next.kind == "name" and self._next.word.lower() == b"free":
                    self._bound(self._take(), name, -math.inf, math.inf)
                    continue
                self._compared(name, self._compare(), self._limit())
            else:
                limit = self._limit()
                compare = {b"<=": b">=", b">=": b"<=", b"=": b"="}[self._compare()]
                name = self._name()
                self._compared(name, compare, limit)
                if self._next.kind == "compare":
                    self._compared(name, self._compare(), self._limit())
        if self._next.kind == "compare":
            raise self._wrong(self._next, "has a third limit of a bound")

    def _compared(self, name: bytes, compare: bytes, limit: float) -> None:
        self._bound(
            self._next,
            name,
            limit if compare != b"<=" else None,
            limit if compare != b">=" else None,
        )

    def _bound(self, token: _Token, name: bytes, low: float | None, high: float | None) -> None:
        for limits, value in ((self._text.lower, low), (self._text.upper, high)):
            if value is None:
                continue
            if name in limits:
                raise self._wrong(token, f"or the one before bounds {shown(name)} a second time")
            limits[name] = value

    def _names(self) -> set[bytes]:
        """Columns that are known: a misspelt one would become a column, and the one meant lose its kind."""
        found: set[bytes] = set()
        while self._next.kind == "name":
            if self._next.word not in self._text.columns:
                raise self._wrong(
                    self._next,
                    f"names {shown(self._next.word)}, which neither the objective nor a row nor a bound has; "
                    "add it to the objective with the coefficient 0",
                )
            found.add(self._name())
        return found

    def _general(self) -> None:
        self._text.integer |= self._names()

    def _binary(self) -> None:
        self._text.binary |= self._names()
        for name in self._text.binary:
            low, high = self._text.limits(name)
            if low < 0.0 or high > 1.0:
                raise self._wrong(self._next, f"or one before makes {shown(name)} binary, beyond its bounds")

    def _end(self) -> None:
        """Nothing follows."""

    def _semi(self) -> None:
        self._names()  # read so that the sections behind it are seen; who takes the model refuses them
