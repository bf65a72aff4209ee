"""A second reader of .lp files, to check HiGHS's reader: both must give the same model.

HiGHS reads `2 a + 3 a` as 3 a, drops a constant on the left of a constraint, and accepts `nan`. So the text
is read here too, with a narrow grammar (linear constraints with one limit, bounds, integers, binaries, a
closing `end`). Text outside the grammar is refused with its line, and HiGHS's model must equal the model
read here.

HiGHS takes names like `x[0,1]`, Gurobi's default, for the beginning of a quadratic part. HiGHS therefore
gets a copy of the file with `x(0,1)` in their place, and the model gets the file's names back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.errors import ModelError
from dovetail.core.files import Meter
from dovetail.core.mip import INFINITY, Mip
from dovetail.models.text import NAME, lines, shown

HEADER = re.compile(
    rb"\s*(?:(?P<objective>max(?:imi[sz]e|imum)?|min(?:imi[sz]e|imum)?)"
    rb"|(?P<rows>subject\s+to|such\s+that|s\.t\.|st)"
    rb"|(?P<bounds>bounds?)|(?P<general>gen(?:erals?)?)|(?P<binary>bin(?:ary|aries)?)"
    rb"|(?P<semi>semis?|semi-continuous)|(?P<end>end))(?=\s|$)(?!\s*:)",
    re.IGNORECASE,
)
"""A word that begins a section."""
_PLAIN = rb"[^\s+\-*^/\[\]<>=:|]"
_NAME = _PLAIN + rb"+(?:\[" + _PLAIN + rb"+\]" + _PLAIN + rb"*)*"
"""Brackets belong to a name if no space precedes them and they contain no arithmetic: x[0,1]."""
TOKEN = re.compile(
    rb"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<compare>[<>=]+)|(?P<sign>[+-])"
    rb"|(?P<colon>:+)|(?P<strange>[\[\]*^/|])|(?P<name>" + _NAME + rb")|(?P<stop>$))"
)


_NAMES = re.compile(_NAME)
_ROUND = bytes.maketrans(b"[]", b"()")


class Token(NamedTuple):
    """A word, a number or a sign."""

    kind: str
    word: bytes
    line: int
    glued: bool
    """Whether no space separates the token from the word before."""


class Tokens:
    """All tokens of a file, with one token of lookahead."""

    def __init__(self, path: Path, meter: Meter) -> None:
        self._meter = meter
        self._stream = self._split(path)
        self.next = Token("stop", b"", 0, False)
        self.behind = 0
        """The line of the last token taken."""
        self.take()

    def take(self) -> Token:
        """Take the next token."""
        taken, self.next = self.next, next(self._stream, self.next)
        self.behind = taken.line
        return taken

    def wrong(self, token: Token, what: str) -> ModelError:
        """The error for a token, with its line."""
        return ModelError(f"{self._meter.name} cannot be read as an LP file: line {token.line} {what}.")

    def wrong_here(self, what: str) -> ModelError:
        """The error for the next token."""
        return self.wrong(self.next, what)

    def empty(self) -> ModelError:
        """The error for an empty file."""
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
                assert found is not None  # the remaining kind of token is a name
                kind = found.lastgroup or ""
                count += 1
                if kind != "stop":
                    yield Token(kind, found[kind], number, found.start(kind) == place > 0)
                place = found.end()
            self._meter.add_elements(count, "the file names or numbers")
        yield Token("stop", b"", number, False)


TOLERANCE = 1e-6
"""Largest distance by which an integer may violate a limit of its column."""


@dataclass
class LpRow:
    """Coefficients, a sign (<=, >= or =), and the right-hand side."""

    coefficients: dict[bytes, float]
    compare: bytes
    limit: float


@dataclass
class LpProgram:
    """The contents of an .lp file."""

    maximises: bool = False
    cost: dict[bytes, float] = field(default_factory=dict)
    offset: float = 0.0
    rows: list[LpRow] = field(default_factory=list)
    lower: dict[bytes, float] = field(default_factory=dict)
    upper: dict[bytes, float] = field(default_factory=dict)
    """Stated limits; all others are 0 and infinity."""
    columns: dict[bytes, None] = field(default_factory=dict)
    """Columns in the order of their first appearance."""
    labels: set[bytes] = field(default_factory=set)
    """Names of rows and of the objective."""
    integer: set[bytes] = field(default_factory=set)
    binary: set[bytes] = field(default_factory=set)

    def limits(self, column: bytes) -> tuple[float, float]:
        """Lower and upper limit of a column."""
        high = 1.0 if column in self.binary else math.inf
        return self.lower.get(column, 0.0), self.upper.get(column, high)

    def agrees(self, mip: Mip) -> bool:
        """Whether a program equals the one in the text."""
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
    """Lower limits as written, before a program rounded those of its integers up."""
    rounded = whole & (np.ceil(ours - TOLERANCE) <= theirs) & (theirs <= np.ceil(ours))
    return np.where(rounded, ours, theirs)


def _close(theirs: FloatArray, ours: ArrayLike) -> bool:
    """Equality up to the digits in which two number readers may differ."""
    ours = np.asarray(ours, dtype=np.float64)
    ours = np.where(np.abs(ours) >= INFINITY, np.copysign(np.inf, ours), ours)
    return np.allclose(theirs, ours, rtol=1e-12, atol=0.0)


INFINITE = (b"inf", b"infinity")
RESERVED = (*INFINITE, b"nan", b"free")
"""Words that some readers take for a number and that cannot be names."""


def parse_lp(path: Path, meter: Meter) -> LpProgram:
    """The contents of an .lp file; a `ModelError` names the first line outside the grammar."""
    return _Parser(path, meter).run()


class _Parser:
    def __init__(self, path: Path, meter: Meter) -> None:
        self._meter = meter
        self._tokens = Tokens(path, meter)
        self._program = LpProgram()

    def run(self) -> LpProgram:
        seen: list[str] = []
        readers = {
            "objective": self._objective, "rows": self._rows, "bounds": self._bounds,
            "general": self._general, "binary": self._binary, "semi": self._semicontinuous, "end": self._end,
        }  # fmt: skip
        while self._tokens.next.kind != "stop":
            token = self._tokens.take()
            if token.kind not in readers:
                raise self._tokens.wrong(token, f"has {shown(token.word)} where a section must begin")
            if token.kind in seen or (seen and seen[-1] == "end"):
                raise self._tokens.wrong(token, f"begins {shown(token.word)} a second time or behind the end")
            if not seen and token.kind != "objective":
                raise self._tokens.wrong(token, "begins without an objective: min or max comes first")
            seen.append(token.kind)
            if token.kind == "objective":
                self._program.maximises = token.word.lower().startswith(b"max")
            readers[token.kind]()
        if not seen:
            raise self._tokens.empty()
        if seen[-1] != "end":
            raise self._tokens.wrong_here("is the last, and it is no 'end': the file is cut short")
        return self._program

    def _objective(self) -> None:
        self._program.cost, constant = self._sum(self._label(required=False), "objective")
        self._program.offset = constant or 0.0

    def _rows(self) -> None:
        while self._tokens.next.kind in ("sign", "number", "name", "strange", "compare", "colon"):
            on_same_line = bool(self._program.rows) and self._tokens.next.line == self._tokens.behind
            first = self._label(required=on_same_line)
            coefficients, constant = self._sum(first, "row")
            if constant is not None:
                raise self._tokens.wrong_here(
                    f"or the one before has the number {constant:g} among the columns of a row: numbers "
                    "stand behind the sign, and a row with two limits is written as two rows",
                )
            if not coefficients:
                raise self._tokens.wrong_here("or the one before has a row without columns")
            compare = self._comparison_sign()
            self._meter.add_elements(NAME, "the file names or numbers")
            self._program.rows.append(LpRow(coefficients, compare, self._limit()))

    def _bounds(self) -> None:
        while (ahead := self._tokens.next).kind in ("sign", "number", "name"):
            if ahead.kind == "name" and ahead.word.lower() not in INFINITE:
                name = self._name()
                if self._tokens.next.kind == "name" and self._tokens.next.word.lower() == b"free":
                    self._bound(self._tokens.take(), name, -math.inf, math.inf)
                    continue
                self._compared(name, self._comparison_sign(), self._limit())
            else:
                limit = self._limit()
                compare = {b"<=": b">=", b">=": b"<=", b"=": b"="}[self._comparison_sign()]
                name = self._name()
                self._compared(name, compare, limit)
                if self._tokens.next.kind == "compare":
                    self._compared(name, self._comparison_sign(), self._limit())
        if self._tokens.next.kind == "compare":
            raise self._tokens.wrong_here("has a third limit of a bound")

    def _compared(self, name: bytes, compare: bytes, limit: float) -> None:
        self._bound(
            self._tokens.next,
            name,
            limit if compare != b"<=" else None,
            limit if compare != b">=" else None,
        )

    def _bound(self, token: Token, name: bytes, low: float | None, high: float | None) -> None:
        for limits, value in ((self._program.lower, low), (self._program.upper, high)):
            if value is None:
                continue
            if name in limits:
                raise self._tokens.wrong(token, f"or the one before bounds {shown(name)} a second time")
            limits[name] = value

    def _general(self) -> None:
        self._program.integer |= self._names()

    def _binary(self) -> None:
        self._program.binary |= self._names()
        for name in self._program.binary:
            low, high = self._program.limits(name)
            if low < 0.0 or high > 1.0:
                raise self._tokens.wrong_here(f"or one before makes {shown(name)} binary, beyond its bounds")

    def _end(self) -> None:
        """Require the end of the file."""

    def _semicontinuous(self) -> None:
        self._names()  # read so that the sections after it are seen; the conversion of the model refuses them

    def _name(self) -> bytes:
        token = self._tokens.take()
        if token.kind != "name" or token.word.lower() in RESERVED or token.word[:1] == b".":
            raise self._tokens.wrong(token, f"has {shown(token.word)} where the name of a column must be")
        return self._known_column(token.word)

    def _names(self) -> set[bytes]:
        """Names of known columns: a misspelt name would become a new column."""
        found: set[bytes] = set()
        while self._tokens.next.kind == "name":
            word = self._tokens.next.word
            if word not in self._program.columns:
                raise self._tokens.wrong_here(
                    f"names {shown(word)}, which neither the objective nor a row nor a bound has; "
                    "add it to the objective with the coefficient 0",
                )
            found.add(self._name())
        return found

    def _label(self, *, required: bool) -> bytes | None:
        """Take a label; or return the name of the column that the word turned out to be."""
        if self._tokens.next.kind != "name":
            return None
        token = self._tokens.take()
        if self._tokens.next.kind == "colon":
            colon = self._tokens.take()
            if colon.word != b":" or token.word in self._program.labels:
                raise self._tokens.wrong(token, f"has the label {shown(token.word)} a second time, or '::'")
            self._program.labels.add(token.word)
            return None
        if required:
            raise self._tokens.wrong(token, "begins a second row; give each a line of its own")
        if token.word.lower() in RESERVED:
            raise self._tokens.wrong(token, f"has {shown(token.word)} where the name of a column must be")
        return self._known_column(token.word)

    def _limit(self) -> float:
        """The number beside a comparison, which may be infinite."""
        sign = self._sign()
        ahead = self._tokens.next
        if ahead.kind == "name" and ahead.word.lower() in INFINITE:
            self._tokens.take()
            return sign * math.inf
        if ahead.kind != "number":
            raise self._tokens.wrong(ahead, f"has {shown(ahead.word)} where a number must be")
        return sign * self._number()

    def _comparison_sign(self) -> bytes:
        token = self._tokens.take()
        if token.kind != "compare" or token.word not in (b"<=", b">=", b"="):
            raise self._tokens.wrong(token, f"has {shown(token.word)} where <=, >= or = must be")
        return token.word

    def _sum(self, first: bytes | None, what: str) -> tuple[dict[bytes, float], float | None]:
        """The terms, and the constant among them; `first` is a name that was already taken."""
        found: dict[bytes, float] = {} if first is None else {first: 1.0}
        constant = None
        begins = first is None
        while self._tokens.next.kind in ("sign", "number", "name", "strange"):
            ahead = self._tokens.next
            if not begins and ahead.kind not in ("sign", "strange"):
                raise self._tokens.wrong(ahead, f"has no sign before {shown(ahead.word)}")
            name, value = self._term(what)
            if name is None and constant is None:
                constant = value
            elif name is None or name in found:
                again = "a number" if name is None else shown(name)
                raise self._tokens.wrong_here(
                    f"or the one before has {again} twice in one {what}; add them up"
                )
            else:
                found[name] = value
            begins = False
        return found, constant

    def _term(self, what: str) -> tuple[bytes | None, float]:
        """A column with its coefficient, or a number without a column."""
        value = self._sign()
        if self._tokens.next.kind == "number":
            value *= self._number()
            if self._tokens.next.kind != "name":
                return None, value
        ahead = self._tokens.next
        if ahead.kind == "strange":
            raise self._tokens.wrong(
                ahead,
                f"has {shown(ahead.word)}: a quadratic {what}, or a name with signs or blanks between its "
                "brackets (write the model as .mps)",
            )
        return self._name(), value

    def _sign(self) -> float:
        sign = 1.0
        while self._tokens.next.kind == "sign":
            sign *= -1.0 if self._tokens.take().word == b"-" else 1.0
        return sign

    def _number(self) -> float:
        token, ahead = self._tokens.take(), self._tokens.next
        if ahead.glued and ahead.kind in ("number", "name"):
            start = ahead.word[:1]
            if ahead.kind == "number" or start in b".,eEdD" or (token.word == b"0" and start in b"xX"):
                raise self._tokens.wrong(token, f"has {shown(token.word + ahead.word)}, which is no number")
        value = float(token.word)
        if math.isinf(value):
            raise self._tokens.wrong(token, f"has {shown(token.word)}, which is too large for a number")
        return value

    def _known_column(self, name: bytes) -> bytes:
        if name not in self._program.columns:
            self._meter.add_elements(NAME, "the file names or numbers")
            self._program.columns[name] = None
        return name


@contextmanager
def without_brackets(path: Path, text: LpProgram, meter: Meter) -> Iterator[Path]:
    """A file with the same contents that HiGHS can read; the file itself if no name has brackets."""
    if not any(b"[" in name for names in (text.columns, text.labels) for name in names):
        yield path
        return
    with TemporaryDirectory(prefix="dovetail-") as folder:
        plain = Path(folder) / path.name
        with plain.open("wb") as file:
            for _, line in lines(path, meter):
                said = line.split(b"\\")[0]
                file.write(_NAMES.sub(lambda found: found[0].translate(_ROUND), said) + b"\n")
        yield plain


def with_brackets(mip: Mip, text: LpProgram) -> Mip:
    """The program that HiGHS read, with the names of the file. Two columns that became one make the readers
    disagree."""
    names, row_names = _renamed(mip.names, text.columns), _renamed(mip.row_names, text.labels)
    if names is mip.names and row_names is mip.row_names:
        return mip
    return replace(mip, names=names, row_names=row_names)


def _renamed(names: Sequence[str] | None, written: Iterable[bytes]) -> Sequence[str] | None:
    own = {name.translate(_ROUND).decode(): name.decode() for name in written if b"[" in name}
    return names if names is None or not own else [own.get(name, name) for name in names]
