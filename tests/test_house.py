"""The house as a stranger finds it: no circles, short functions, files named by their idea."""

import ast
from pathlib import Path

from tests.source_nodes import nodes

ROOT = Path(__file__).parent.parent / "src"
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}
"""Every file of the library and of what stands beside it, by the name of its module."""

MOST_LINES_OF_A_FUNCTION = 60


def imports(path):
    """The modules of ours that a file imports: at the top, in functions, and for type checkers."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in FILES)
        elif isinstance(node, ast.ImportFrom) and node.module in FILES:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in FILES else node.module


def a_circle(graph):
    """Files that import each other in a circle, or None: what is left when leaves are taken away."""
    left = {name: set(targets) - {name} for name, targets in graph.items()}
    while leaves := [name for name, targets in left.items() if not targets & left.keys()]:
        for name in leaves:
            del left[name]
    if not left:
        return None
    way = [next(iter(left))]
    while way[-1] not in way[:-1]:
        way.append(min(left[way[-1]] & left.keys()))
    return way[way.index(way[-1]) :]


def test_no_files_import_each_other_in_a_circle():
    circle = a_circle({name: imports(path) for name, path in FILES.items()})
    assert circle is None, " -> ".join(circle)


def test_the_search_for_circles_finds_them():
    assert a_circle({"a": ["b"], "b": ["c"], "c": ["b"], "d": []}) == ["b", "c", "b"]
    assert a_circle({"a": ["b", "c"], "b": ["c"], "c": []}) is None


def test_functions_can_be_read_at_a_glance():
    functions = (
        (f"{name}.{node.name}", node.lines)
        for name, path in FILES.items()
        for node in nodes(path)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )
    assert not {name: size for name, size in functions if size > MOST_LINES_OF_A_FUNCTION}


def test_benchmarks_import_what_is_there():
    """Nothing else looks at those that run by hand only."""
    for path in (ROOT.parent / "benchmarks").glob("*.py"):
        named = {node.module for node in nodes(path) if isinstance(node, ast.ImportFrom) and node.module}
        ours = {name for name in named if name.startswith("dovetail") and ".compat." not in name}
        assert ours <= FILES.keys(), path.name


def test_no_room_is_a_collection():
    """A file says by its name what idea it holds."""
    names = {part.removesuffix(".py") for path in FILES.values() for part in path.relative_to(ROOT).parts}
    assert not names & {"utils", "util", "helpers", "misc", "common", "tools"}
