"""The parts of a line of an .lp file: signs, numbers, names, comparisons, sums."""

from __future__ import annotations

import math

from dovetail.core.file_limits import Meter
from dovetail.models.lp.program import LpProgram
from dovetail.models.lp.tokens import Tokens
from dovetail.models.text import NAME, shown

INFINITE = (b"inf", b"infinity")
RESERVED = (*INFINITE, b"nan", b"free")
"""Words that some reader takes for a number; no column is called so."""


class LpExpressions:
    """Takes them from the tokens; columns that are named enter the program."""

    def __init__(self, tokens: Tokens, program: LpProgram, meter: Meter) -> None:
        self._tokens, self._program, self._meter = tokens, program, meter

    def name(self) -> bytes:
        """The name of a column."""
        token = self._tokens.take()
        if token.kind != "name" or token.word.lower() in RESERVED or token.word[:1] == b".":
            raise self._tokens.wrong(token, f"has {shown(token.word)} where the name of a column must be")
        return self._known(token.word)

    def names(self) -> set[bytes]:
        """Columns that are known: a misspelt one would become a column, and the one meant lose its kind."""
        found: set[bytes] = set()
        while self._tokens.next.kind == "name":
            word = self._tokens.next.word
            if word not in self._program.columns:
                raise self._tokens.wrong_here(
                    f"names {shown(word)}, which neither the objective nor a row nor a bound has; "
                    "add it to the objective with the coefficient 0",
                )
            found.add(self.name())
        return found

    def label(self, *, required: bool) -> bytes | None:
        """Take a label; or give back the name of the column that it turned out to be."""
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
        return self._known(token.word)

    def limit(self) -> float:
        """The number behind (or before) a comparison, which may be infinite."""
        sign = self._sign()
        ahead = self._tokens.next
        if ahead.kind == "name" and ahead.word.lower() in INFINITE:
            self._tokens.take()
            return sign * math.inf
        if ahead.kind != "number":
            raise self._tokens.wrong(ahead, f"has {shown(ahead.word)} where a number must be")
        return sign * self._number()

    def compare(self) -> bytes:
        """<=, >= or =."""
        token = self._tokens.take()
        if token.kind != "compare" or token.word not in (b"<=", b">=", b"="):
            raise self._tokens.wrong(token, f"has {shown(token.word)} where <=, >= or = must be")
        return token.word

    def sum(self, first: bytes | None, what: str) -> tuple[dict[bytes, float], float | None]:
        """Terms, and the constant among them if there is one; `first` is a name that was taken already."""
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
        """A column and its coefficient; or no column, and a number."""
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
        return self.name(), value

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
            raise self._tokens.wrong(token, f"has {shown(token.word)}, which is beyond all numbers")
        return value

    def _known(self, name: bytes) -> bytes:
        if name not in self._program.columns:
            self._meter.add_elements(NAME, "the file names or numbers")
            self._program.columns[name] = None
        return name
