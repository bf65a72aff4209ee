"""A check of an .mps file before HiGHS reads the file.

HiGHS reads `abc` as 0, makes a variable of a misspelt bound, sets every cost to 0 when an entry names an
unknown constraint, and stops at the first line that looks like the end. So the text is checked first: all
sections once and in order, every name known, every number valid, and a closing line. The model that HiGHS
reads must then have the same variables, constraints and entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from dovetail.core.errors import ModelError
from dovetail.core.files import Meter
from dovetail.core.mip import Mip
from dovetail.models.text import INFINITE, NAME, NUMBER, lines, shown

Fields = Callable[[bytes], list[bytes]]
"""The words of a line."""

ORDER = (b"NAME", b"OBJSENSE", b"ROWS", b"COLUMNS", b"RHS", b"RANGES", b"BOUNDS", b"ENDATA")
NEEDED = (b"ROWS", b"COLUMNS", b"ENDATA")
SENSES = (b"MAX", b"MAXIMIZE", b"MAXIMISE", b"MIN", b"MINIMIZE", b"MINIMISE")
BOUNDS_WITH_NUMBER = (b"UP", b"LO", b"FX", b"LI", b"UI", b"SC")
BOUNDS_WITHOUT_NUMBER = (b"FR", b"MI", b"PL", b"BV")
"""Kinds of bounds without a number, and with one."""
PLACES = ((1, 3), (4, 12), (14, 22), (24, 36), (39, 47), (49, 61))
"""Positions of the words in the fixed format, where names may hold blanks."""
BLANK = (b" ", b"\t")
"""The beginnings of a line that does not begin a section."""
BATCH = 10_000
"""Number of words that are counted at a time."""
GAPS = ((0, 1), (3, 4), (12, 14), (22, 24), (36, 39), (47, 49))


@dataclass
class MpsContents:
    """The contents of a file, as far as they are compared with what HiGHS reads."""

    columns: list[bytes] = field(default_factory=list)
    rows: dict[bytes, bytes] = field(default_factory=dict)
    """The kind of each row: N, L, G or E. The first N is the objective; HiGHS drops the others."""
    entries: int = 0
    """Nonzero coefficients, without those in rows of kind N."""
    fixed: bool = False
    """Whether the file can only be read by positions."""

    @property
    def constraints(self) -> list[bytes]:
        """The rows that are not of kind N."""
        return [name for name, kind in self.rows.items() if kind != b"N"]

    def agrees(self, mip: Mip) -> bool:
        """Whether a program has these columns, rows and entries."""
        sizes = (len(self.columns), len(self.constraints), self.entries)
        named = mip.names is None or [name.encode() for name in mip.names] == self.columns
        return named and sizes == (mip.n_columns, mip.n_rows, mip.A.nnz)


def outline(path: Path, meter: Meter) -> MpsContents:
    """The contents of an .mps file; a `ModelError` names the first line that cannot be right."""
    try:
        return _Scan(meter, bytes.split).run(lines(path, meter))
    except ModelError:
        if meter.met:
            raise
        spent = meter.elements
        try:
            found = _Scan(meter, _fixed_format_words).run(lines(path, meter))
        except ModelError:
            meter.elements = spent
        else:
            found.fixed = True
            return found
        raise


def _fixed_format_words(line: bytes) -> list[bytes]:
    line = line.rstrip()
    if b"\t" in line or len(line) > PLACES[-1][1] or any(line[a:b].strip() for a, b in GAPS):
        raise ValueError("words outside the places of the fixed format")
    return [word for word in (line[a:b].strip() for a, b in PLACES) if word]


class _Scan:
    def __init__(self, meter: Meter, fields: Fields) -> None:
        self._meter = meter
        self._fields = fields
        self._found = MpsContents()
        self._seen: list[bytes] = []
        """Sections so far."""
        self._known: set[bytes] = set()
        """Columns so far."""
        self._name = b""
        self._column: set[bytes] = set()
        """The current column, and the rows in which it has an entry."""
        self._set: bytes | None = None
        self._given: set[bytes] = set()
        """The name of the current right-hand side or ranges, and the rows that it has given."""
        self._integer = False
        self._line = 0
        self._reader: Callable[[list[bytes]], None] = self._no_section
        """The function for lines of the current section."""

    def run(self, text: Iterable[tuple[int, bytes]]) -> MpsContents:
        fields, count = self._fields, 0
        for self._line, line in text:
            if line[:1] not in BLANK:
                self._section_line(line)
                continue
            try:
                words = fields(line)
            except ValueError as reason:
                raise self._wrong_line(str(reason)) from None
            if words:
                self._reader(words)
                count += len(words)
            if count > BATCH:
                self._meter.add_elements(count, "the file names or numbers")
                count = 0
        self._meter.add_elements(count, "the file names or numbers")
        for name in NEEDED:
            if name not in self._seen:
                raise self._wrong_line(f"is the last, and there is no {name.decode()}: the file is cut short")
        return self._found

    def _section_line(self, line: bytes) -> None:
        """A comment, an empty line, or the beginning of a section."""
        if line[:1] != b"*" and line.strip():
            self._section(line.split())

    def _no_section(self, words: list[bytes]) -> None:
        raise self._wrong_line("stands in no section")

    def _section(self, words: list[bytes]) -> None:
        name = words[0]
        if name not in ORDER:
            raise self._wrong_line(
                f"begins {shown(name)}, which is no section of a linear program (quadratic terms, SOS and "
                "indicators are not supported)"
            )
        if name in self._seen:
            raise self._wrong_line(f"begins {name.decode()} a second time")
        if self._seen and (self._seen[-1] == b"ENDATA" or ORDER.index(name) < self._section_index()):
            raise self._wrong_line(f"begins {name.decode()} behind {self._seen[-1].decode()}")
        if self._integer:
            raise self._wrong_line("ends the columns, but an INTORG has no INTEND")
        if name == b"OBJSENSE" and len(words) > 1:
            self._sense(words[1:])
        elif name != b"NAME" and len(words) > 1:
            raise self._wrong_line(f"has words behind {name.decode()}")
        self._seen.append(name)
        self._set, self._given = None, set()
        self._reader = {
            b"OBJSENSE": self._sense, b"ROWS": self._row, b"COLUMNS": self._entry,
            b"RHS": self._right, b"RANGES": self._right, b"BOUNDS": self._bound,
        }.get(name, self._no_section)  # fmt: skip

    def _section_index(self) -> int:
        """Require the order of sections: RHS, RANGES and BOUNDS in any order, OBJSENSE before the rows."""
        places = [min(ORDER.index(name), ORDER.index(b"RHS")) for name in self._seen]
        return max(place if place > 1 else 0 for place in places)

    def _sense(self, words: list[bytes]) -> None:
        if len(words) != 1 or words[0].upper() not in SENSES:
            raise self._wrong_line("is no MAX or MIN")

    def _row(self, words: list[bytes]) -> None:
        if len(words) != 2 or words[0] not in (b"N", b"L", b"G", b"E"):
            raise self._wrong_line("is no N, L, G or E and a name")
        if words[1] in self._found.rows:
            raise self._wrong_line(f"has row {shown(words[1])} a second time")
        self._found.rows[words[1]] = words[0]
        self._meter.add_elements(NAME, "the file names or numbers")

    def _entry(self, words: list[bytes]) -> None:
        count = len(words)
        if count == 3 and words[1] == b"'MARKER'":
            return self._marker(words[2])
        if count not in (3, 5):
            raise self._wrong_line("is no column with one or two rows and numbers")
        if words[0] != self._name:
            self._begin(words[0])
        self._coefficient(words[1], words[2])
        if count == 5:
            self._coefficient(words[3], words[4])
        return None

    def _begin(self, name: bytes) -> None:
        if name in self._known:
            raise self._wrong_line(f"has column {shown(name)} in a second place")
        self._meter.add_elements(NAME, "the file names or numbers")
        self._known.add(name)
        self._found.columns.append(name)
        self._name, self._column = name, set()

    def _coefficient(self, row: bytes, value: bytes) -> None:
        kind = self._kind(row)
        if row in self._column:
            raise self._wrong_line(f"gives column {shown(self._name)} a second entry in {shown(row)}")
        self._column.add(row)
        if self._number(value) != 0.0 and kind != b"N":
            self._found.entries += 1

    def _marker(self, word: bytes) -> None:
        if word not in (b"'INTORG'", b"'INTEND'") or self._integer == (word == b"'INTORG'"):
            raise self._wrong_line(f"has the marker {shown(word)} where it cannot be")
        self._integer = not self._integer

    def _right(self, words: list[bytes]) -> None:
        """A line of RHS or RANGES; the name of the set may be left out."""
        if len(words) not in (2, 3, 4, 5):
            raise self._wrong_line("is no set with one or two rows and numbers")
        self._require_one_set(words.pop(0) if len(words) % 2 else b"")
        for row, value in zip(words[::2], words[1::2], strict=True):
            self._kind(row)
            if row in self._given:
                raise self._wrong_line(f"gives {shown(row)} a second number")
            self._given.add(row)
            self._number(value, infinite=self._seen[-1] == b"RHS")

    def _bound(self, words: list[bytes]) -> None:
        kind, *rest = words
        value = None
        if kind in BOUNDS_WITH_NUMBER and len(rest) in (2, 3):
            value = rest.pop()
        elif kind in BOUNDS_WITHOUT_NUMBER and len(rest) in (1, 2, 3):
            value = rest.pop() if len(rest) == 3 else None  # some programs write a name here nevertheless
        else:
            raise self._wrong_line("is no kind of bound with a column, and a number where it takes one")
        self._require_one_set(rest[0] if len(rest) == 2 else b"")
        if rest[-1] not in self._known:
            raise self._wrong_line(f"names {shown(rest[-1])}, which is no column")
        if value is not None:
            self._number(value, infinite=True)

    def _require_one_set(self, name: bytes) -> None:
        if self._set not in (None, name):
            raise self._wrong_line(f"begins a second set {shown(name)}; one file is one model")
        self._set = name

    def _kind(self, row: bytes) -> bytes:
        kind = self._found.rows.get(row)
        if kind is None:
            raise self._wrong_line(f"names {shown(row)}, which is no row")
        return kind

    def _number(self, word: bytes, *, infinite: bool = False) -> float:
        if NUMBER.fullmatch(word):
            value = float(word)
            if infinite or abs(value) < float("inf"):
                return value
        elif infinite and INFINITE.fullmatch(word):
            return float(word)
        raise self._wrong_line(f"has {shown(word)} where a number must be")

    def _wrong_line(self, what: str) -> ModelError:
        return ModelError(f"{self._meter.name} cannot be read as an MPS file: line {self._line} {what}.")
