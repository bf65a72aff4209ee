"""A parsed program: its text, its syntax tree, and the position of each node.

The meaning of a program's names, as far as needed: models, solvers, objects of its classes.

A name has the same meaning everywhere, and `a.b` has the same meaning for every `a`: this is coarse but
sufficient. Meanings are passed on by assignments, `with`, arguments and returned values.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

SOLVER, MODEL = "a solver of Pyomo's", "a model"
"""The results of `SolverFactory` and `Model`; the other kinds are the program's own classes, by name."""
MODELS = ("Model", "ConcreteModel")


class Bindings:
    """The kinds of names."""

    def __init__(self, program: PeerProgram) -> None:
        self._program = program
        self._classes = {node.name: node for node in program.all(ast.ClassDef)}
        self._functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {
            **{node.name: node for node in program.all(ast.FunctionDef)},
            **{node.name: node for node in program.all(ast.AsyncFunctionDef)},
        }
        self._kinds: dict[str, set[str]] = {}
        size = -1
        while size != (size := sum(map(len, self._kinds.values()))):  # until nothing changes
            for target, value in self.handed_on():
                self._note(target, self.kinds(value))

    def kinds(self, node: ast.expr | None) -> set[str]:
        """The kinds that an expression may have."""
        if isinstance(node, ast.Call):
            return self._of_a_call(node)
        if isinstance(node, (ast.IfExp, ast.BoolOp)):
            parts = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
            return {kind for part in parts for kind in self.kinds(part)}
        if isinstance(node, (ast.NamedExpr, ast.Await)):
            return self.kinds(node.value)
        return self._kinds.get(_key(node), set())

    def defines(self, method: str) -> set[str]:
        """The classes of the program that have a method of this name."""
        return {
            name
            for name, node in self._classes.items()
            if any(isinstance(each, ast.FunctionDef) and each.name == method for each in node.body)
        }

    def _note(self, target: ast.expr | str, kinds: set[str]) -> None:
        key = target if isinstance(target, str) else _key(target)
        if key and kinds:
            self._kinds.setdefault(key, set()).update(kinds)

    def _of_a_call(self, call: ast.Call) -> set[str]:
        name = called(call)
        origin = self._program.origin(call.func)
        if name == "SolverFactory" or SOLVER in self._kinds.get(f"{_key(call.func)}()", ()):
            return {SOLVER}
        if origin.endswith(".SolverFactory") or origin.startswith(
            ("pyomo.contrib.appsi", "pyomo.contrib.solver")
        ):
            return {SOLVER}
        if name in self._classes:
            return {name}
        if name in MODELS:
            return {MODEL}
        if name not in self._functions:
            return set()
        inside = (node for node in ast.walk(self._functions[name]))
        given = [node.value for node in inside if isinstance(node, (ast.Return, ast.Yield))]
        return {kind for value in given for kind in self.kinds(value)}

    def handed_on(self) -> Iterator[tuple[ast.expr | str, ast.expr]]:
        """All pairs of a target and what it gets."""
        for node in ast.walk(self._program.tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    yield from _pairs(target, node.value)
                    yield from ((f"{_key(target)}[]", each) for each in _entries(node.value))
                    if last_name(node.value) == "SolverFactory":
                        self._note(f"{_key(target)}()", {SOLVER})
            elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
                yield node.target, node.value
            elif isinstance(node, ast.withitem) and node.optional_vars is not None:
                yield node.optional_vars, node.context_expr
            elif isinstance(node, (ast.For, ast.comprehension)):
                yield from ((node.target, each) for each in _entries(node.iter))
            elif isinstance(node, ast.Call):
                yield from self._arguments(node)

    def _arguments(self, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
        """The parameters of the program's own functions, and the arguments of a call."""
        name = called(call)
        function: ast.AST | None = self._functions.get(name)
        if name in self._classes:
            body = self._classes[name].body
            own = (each for each in body if isinstance(each, ast.FunctionDef) and each.name == "__init__")
            function = next(own, None)
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        skipped = 1 if names[:1] in (["self"], ["cls"]) else 0
        yield from zip(names[skipped:], call.args, strict=False)
        yield from ((keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """`a, b = c, d` one by one."""
    many = (ast.Tuple, ast.List)
    if isinstance(target, many) and isinstance(value, many) and len(target.elts) == len(value.elts):
        for each, one in zip(target.elts, value.elts, strict=True):
            yield from _pairs(each, one)
    else:
        yield target, value


def _entries(node: ast.expr) -> list[ast.expr]:
    """The entries of a list or dictionary display."""
    return list(getattr(node, "elts", getattr(node, "values", [])) if isinstance(node, _CONTAINERS) else [])


_CONTAINERS = (ast.List, ast.Tuple, ast.Set, ast.Dict)


def _key(node: ast.expr | None) -> str:
    """The name that identifies an expression; "" if there is none."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f".{node.attr}"
    if isinstance(node, ast.Subscript):
        inner = _key(node.value)
        return f"{inner}[]" if inner else ""
    return ""


Node = TypeVar("Node", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.ExceptHandler, ast.match_case)
"""Statements inside these nodes may run never, once, or many times."""


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
        """The text of a node."""
        return self.source.text(node)

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, from the nearest on."""
        while id(node) in self._above:
            node = self._above[id(node)]
            yield node

    def scope(self, node: ast.AST) -> ast.AST:
        """The function around a node; the whole program if there is none."""
        around = (up for up in self.above(node) if isinstance(up, (*_FUNCTIONS, ast.Module)))
        return next(around, self.tree)

    def branches(self, node: ast.AST) -> set[int]:
        """The statements, in the scope of a node, that decide whether it runs."""
        found = set()
        for up in self.above(node):
            if isinstance(up, (*_FUNCTIONS, ast.Module)):
                break
            if isinstance(up, BRANCHES):
                found.add(id(up))
        return found

    def is_statement(self, call: ast.Call) -> bool:
        """Whether the result of a call is unused."""
        return isinstance(next(self.above(call), None), ast.Expr)

    def is_called(self, node: ast.expr) -> bool:
        """Whether an expression is the function of a call."""
        up = next(self.above(node), None)
        return isinstance(up, ast.Call) and up.func is node

    @cached_property
    def imported(self) -> dict[str, str]:
        """The names that imports bind, and their full names."""
        found = {}
        for node in self.all(ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.split(".")[0]
                found[alias.asname or name] = name
        for each in self.all(ast.ImportFrom):
            found |= {alias.asname or alias.name: f"{each.module}.{alias.name}" for alias in each.names}
        return found

    def origin(self, node: ast.expr) -> str:
        """The full name of an imported object, imported by itself or with its module; "" otherwise."""
        if isinstance(node, ast.Name):
            return self.imported.get(node.id, "")
        if isinstance(node, ast.Attribute):
            above = self.origin(node.value)
            return f"{above}.{node.attr}" if above else ""
        return ""


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def called(call: ast.Call) -> str:
    """The last part of the called name."""
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
        """The text of the node."""
        start, end = self.span(node)
        return self._bytes[start:end].decode()

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Its first and last character."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._lines[node.lineno - 1] + node.col_offset
        return start, self._lines[node.end_lineno - 1] + node.end_col_offset

    def replaced(self, node: ast.expr | ast.stmt, text: str) -> Edit:
        """An edit of the whole node."""
        return Edit(*self.span(node), text)

    def part_replaced(self, node: ast.expr | ast.stmt, part: str, text: str) -> Edit:
        """An edit of the first occurrence of a part of the node's text."""
        start = self.span(node)[0] + self.text(node).encode().index(part.encode())
        return Edit(start, start + len(part.encode()), text)

    def call_replaced(self, call: ast.Call, text: str) -> Edit:
        """An edit of a call, in which the comments between its parentheses stay."""
        written = io.StringIO(self.text(call)).readline
        notes = [
            token.string for token in tokenize.generate_tokens(written) if token.type == tokenize.COMMENT
        ]
        return self.replaced(
            call, "\n".join([f"{text[:-1]},  {notes[0]}", *notes[1:], ")"]) if notes else text
        )

    def line_after(self, node: ast.stmt, text: str) -> Edit:
        """An edit that adds a line behind a statement's own."""
        assert node.end_lineno is not None
        at = self._lines[node.end_lineno]
        ended = at == 0 or self._bytes[at - 1 : at] == b"\n"
        return Edit(at, at, f"{text}\n" if ended else f"\n{text}\n")

    def edited(self, edits: Iterable[Edit]) -> str:
        """The program with all edits, which must not overlap."""
        made = bytearray(self._bytes)
        for edit in sorted(edits, key=lambda each: each.start, reverse=True):
            made[edit.start : edit.end] = edit.text.encode()
        return made.decode()
