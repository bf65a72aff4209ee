"""The sections of an .lp file, in their order."""

from __future__ import annotations

import math
from pathlib import Path

from dovetail.core.file_limits import Meter
from dovetail.models.lp.expressions import INFINITE, LpExpressions
from dovetail.models.lp.program import LpProgram, LpRow
from dovetail.models.lp.tokens import Token, Tokens
from dovetail.models.text import NAME, shown


def parse_lp(path: Path, meter: Meter) -> LpProgram:
    """What an .lp file says; a `ModelError` names the first line outside the grammar."""
    return _Parser(path, meter).run()


class _Parser:
    """One pass over the tokens."""

    def __init__(self, path: Path, meter: Meter) -> None:
        self._meter = meter
        self._tokens = Tokens(path, meter)
        self._program = LpProgram()
        self._read = LpExpressions(self._tokens, self._program, meter)

    def run(self) -> LpProgram:
        seen: list[str] = []
        readers = {
            "objective": self._objective, "rows": self._rows, "bounds": self._bounds,
            "general": self._general, "binary": self._binary, "semi": self._semi, "end": self._end,
        }  # fmt: skip
        while self._tokens.next.kind != "stop":
            token = self._tokens.take()
            if token.kind not in readers:
                raise self._tokens.wrong(token, f"has {shown(token.word)} where no section is")
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
        self._program.cost, constant = self._read.sum(self._read.label(required=False), "objective")
        self._program.offset = constant or 0.0

    def _rows(self) -> None:
        while self._tokens.next.kind in ("sign", "number", "name", "strange", "compare", "colon"):
            on_same_line = bool(self._program.rows) and self._tokens.next.line == self._tokens.behind
            first = self._read.label(required=on_same_line)
            coefficients, constant = self._read.sum(first, "row")
            if constant is not None:
                raise self._tokens.wrong_here(
                    f"or the one before has the number {constant:g} among the columns of a row: numbers "
                    "stand behind the sign, and a row with two limits is written as two rows",
                )
            if not coefficients:
                raise self._tokens.wrong_here("or the one before has a row without columns")
            compare = self._read.compare()
            self._meter.add_elements(NAME, "the file names or numbers")
            self._program.rows.append(LpRow(coefficients, compare, self._read.limit()))

    def _bounds(self) -> None:
        while (ahead := self._tokens.next).kind in ("sign", "number", "name"):
            if ahead.kind == "name" and ahead.word.lower() not in INFINITE:
                name = self._read.name()
                if self._tokens.next.kind == "name" and self._tokens.next.word.lower() == b"free":
                    self._bound(self._tokens.take(), name, -math.inf, math.inf)
                    continue
                self._compared(name, self._read.compare(), self._read.limit())
            else:
                limit = self._read.limit()
                compare = {b"<=": b">=", b">=": b"<=", b"=": b"="}[self._read.compare()]
                name = self._read.name()
                self._compared(name, compare, limit)
                if self._tokens.next.kind == "compare":
                    self._compared(name, self._read.compare(), self._read.limit())
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
        self._program.integer |= self._read.names()

    def _binary(self) -> None:
        self._program.binary |= self._read.names()
        for name in self._program.binary:
            low, high = self._program.limits(name)
            if low < 0.0 or high > 1.0:
                raise self._tokens.wrong_here(f"or one before makes {shown(name)} binary, beyond its bounds")

    def _end(self) -> None:
        """Nothing follows."""

    def _semi(self) -> None:
        self._read.names()  # read so that the sections behind it are seen; who takes the model refuses them
