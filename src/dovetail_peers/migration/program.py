"""A program as it was read: its text, its syntax tree, and where each node stands."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.ExceptHandler, ast.match_case)
"""What is below one of these may be run once, never, or many times."""


class PeerProgram:
    """The syntax tree of a program, with the way from each node to the top."""

    def __init__(self, text: str) -> None:
        self.source, self.tree = SourceBytes(text), ast.parse(text)
        self._above = {
            id(below): node for node in ast.walk(self.tree) for below in ast.iter_child_nodes(node)
        }

    def all(self, kind: type[Node]) -> Iterator[Node]:
        """All nodes of a kind."""
        return (node for node in ast.walk(self.tree) if isinstance(node, kind))

    def text(self, node: ast.expr | ast.stmt) -> str:
        """What stands there."""
        return self.source.text(node)

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, from the nearest on."""
        while id(node) in self._above:
            node = self._above[id(node)]
            yield node

    def scope(self, node: ast.AST) -> ast.AST:
        """The function around a node; the whole program where there is none."""
        around = (up for up in self.above(node) if isinstance(up, (*_FUNCTIONS, ast.Module)))
        return next(around, self.tree)

    def branches(self, node: ast.AST) -> set[int]:
        """What decides, in the scope of a node, whether it is run."""
        found = set()
        for up in self.above(node):
            if isinstance(up, (*_FUNCTIONS, ast.Module)):
                break
            if isinstance(up, BRANCHES):
                found.add(id(up))
        return found

    def is_statement(self, call: ast.Call) -> bool:
        """Whether nobody takes what a call gives back."""
        return isinstance(next(self.above(call), None), ast.Expr)

    def is_called(self, node: ast.expr) -> bool:
        """Whether an expression is what a call calls."""
        up = next(self.above(node), None)
        return isinstance(up, ast.Call) and up.func is node

    @cached_property
    def imported(self) -> dict[str, str]:
        """The names that imports bind, and what they stand for."""
        found = {}
        for node in self.all(ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.split(".")[0]
                found[alias.asname or name] = name
        for each in self.all(ast.ImportFrom):
            found |= {alias.asname or alias.name: f"{each.module}.{alias.name}" for alias in each.names}
        return found

    def origin(self, node: ast.expr) -> str:
        """The full name of something that was imported, by itself or with its module; "" for all else."""
        if isinstance(node, ast.Name):
            return self.imported.get(node.id, "")
        if isinstance(node, ast.Attribute):
            above = self.origin(node.value)
            return f"{above}.{node.attr}" if above else ""
        return ""


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def called(call: ast.Call) -> str:
    """The last part of what is called."""
    return last_name(call.func)


def last_name(node: ast.expr) -> str:
    """`c` of `a.b.c`."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


@dataclass(frozen=True)
class Edit:
    """Bytes from `start` to `end` become `text`."""

    start: int
    end: int
    text: str


class SourceBytes:
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
