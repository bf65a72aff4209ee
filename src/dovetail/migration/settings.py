"""What a program asks of its solver before it solves, as options of `dovetail.solve`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dovetail.migration.edits import Source

OPTIONS = {
    "TimeLimit": "time_limit",
    "timelimit": "time_limit",
    "limits/time": "time_limit",
    "MIPGap": "gap",
    "limits/gap": "gap",
    "Seed": "seed",
    "randomization/randomseedshift": "seed",
}
"""By the name of the solver's own parameter."""
SILENT = {"OutputFlag", "LogToConsole", "display/verblevel"}
"""Parameters that print nothing where they are 0."""
SETTERS = {"setParam", "setRealParam", "setIntParam", "setLongintParam"}


def settings_in(source: Source, tree: ast.AST) -> Iterator[tuple[str, str, str]]:
    """(the model, an option, its value) of every line that sets one; all as they are written."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            yield from _attribute(source, node.targets[0], node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from _call(source, node.func, node.args)


def _attribute(source: Source, target: ast.expr, value: ast.expr) -> Iterator[tuple[str, str, str]]:
    """`model.Params.TimeLimit = 10`."""
    of = getattr(target, "value", None)
    if isinstance(target, ast.Attribute) and isinstance(of, ast.Attribute) and of.attr.lower() == "params":
        yield from _option(source.text(of.value), target.attr, value, source)


def _call(source: Source, function: ast.Attribute, args: list[ast.expr]) -> Iterator[tuple[str, str, str]]:
    """`model.setParam("TimeLimit", 10)`, `model.hideOutput()`."""
    model = source.text(function.value)
    if function.attr == "hideOutput" and not args:
        yield model, "log", "False"
    elif function.attr in SETTERS and len(args) == 2:
        name = args[0].value if isinstance(args[0], ast.Constant) else getattr(args[0], "attr", "")
        yield from _option(model, str(name), args[1], source)


def _option(model: str, name: str, value: ast.expr, source: Source) -> Iterator[tuple[str, str, str]]:
    if name in OPTIONS:
        yield model, OPTIONS[name], source.text(value)
    elif name in SILENT and isinstance(value, ast.Constant) and not value.value:
        yield model, "log", "False"
