"""Changes to the text of a program, at the places that `ast` names."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """Bytes from `start` to `end` become `text`."""

    start: int
    end: int
    text: str


class Source:
    """A program as bytes: `ast` counts columns in UTF-8."""

    def __init__(self, text: str) -> None:
        self._bytes = text.encode()
        self._lines = [0]
        for line in self._bytes.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def text(self, node: ast.expr | ast.stmt) -> str:
        """What stands there."""
        start, end = self.span(node)
        return self._bytes[start:end].decode()

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where it begins and ends."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._lines[node.lineno - 1] + node.col_offset
        return start, self._lines[node.end_lineno - 1] + node.end_col_offset

    def replaced(self, node: ast.expr | ast.stmt, text: str) -> Edit:
        """An edit of all of it."""
        return Edit(*self.span(node), text)

    def line_after(self, node: ast.stmt, text: str) -> Edit:
        """An edit that adds a line behind a statement's own."""
        assert node.end_lineno is not None
        at = self._lines[node.end_lineno]
        ended = at == 0 or self._bytes[at - 1 : at] == b"\n"
        return Edit(at, at, f"{text}\n" if ended else f"\n{text}\n")

    def edited(self, edits: Iterable[Edit]) -> str:
        """The program with all of them, none of which overlap."""
        made = bytearray(self._bytes)
        for edit in sorted(edits, key=lambda each: each.start, reverse=True):
            made[edit.start : edit.end] = edit.text.encode()
        return made.decode()
