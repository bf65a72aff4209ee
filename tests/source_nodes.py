"""The source as the tests of the house see it: imports and functions, each file parsed once in a process."""

import ast
from functools import cache

KINDS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def nodes(path):
    """The imports and functions of a file, wherever they stand in it."""
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, KINDS)]
