"""The checker shares nothing with the code that proves: what it imports, and what it does without."""

import ast
from pathlib import Path

import dovetail

ROOM = Path(dovetail.__file__).parent / "certificates"


def test_it_imports_what_a_problem_is_and_itself_only():
    for path in ROOM.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                allowed = not name.startswith("dovetail") or name.startswith(
                    ("dovetail.core", "dovetail.networks", "dovetail.certificates")
                )
                assert allowed, f"{path.name} imports {name}"
                assert not name.startswith(("torch", "highspy")), path.name
