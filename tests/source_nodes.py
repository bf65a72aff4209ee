"""The source as the tests of the house see it: imports and functions, each file parsed once in a process."""

import ast
from functools import cache

KINDS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def nodes(path):
    """The imports and functions of a file, wherever they stand in it; what functions hold is left out.

    Whole trees of all files would be millions of objects, at which Python looks again and again.
    """
    found = [node for node in statements(ast.parse(path.read_text())) if isinstance(node, KINDS)]
    for node in found:
        if hasattr(node, "body"):
            node.lines = node.end_lineno - node.lineno + 1 - lines_of_docstring(node)
            node.body, node.args, node.decorator_list, node.returns = [], None, [], None
    return found


def lines_of_docstring(function):
    """Those that say what a function is for: they are read instead of its statements."""
    if ast.get_docstring(function) is None:
        return 0
    return function.body[0].end_lineno - function.body[0].lineno + 1


def statements(node):
    """All statements inside a node; expressions, which are most of a file, hold none."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, part, ()):
            yield inner
            yield from statements(inner)
