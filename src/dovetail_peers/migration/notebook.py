"""Jupyter notebooks: the code of all cells is one program, which is rewritten and divided again.

Lines of IPython's own (`%time`, `!pip`) and cells in another language (`%%bash`) are kept as they are.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from dataclasses import replace

from dovetail.core.errors import OptionError
from dovetail_peers.migration.migrate import Migration, migrate
from dovetail_peers.migration.settings import Left

CELL = "#: cell of a notebook"
"""The line before each cell."""
OWN = "pass  #: "
"""A line of IPython's own, as Python reads it."""


def migrate_notebook(text: str, name: str = "the notebook") -> Migration:
    """The notebook with rewritten cells; `before` and `after` are its code."""
    try:
        notebook = json.loads(text)
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        sources = ["".join(cell["source"]) for cell in cells]
    except (ValueError, KeyError, TypeError) as reason:
        raise OptionError(f"{name} is no notebook: {reason!r}.") from reason
    program = "".join(f"{CELL}\n{_python(source)}\n" for source in sources)
    done = migrate(program, name)
    parts = done.text.split(f"{CELL}\n")[1:]
    for cell, part in zip(cells, parts, strict=True):
        lines = [_own(line) for line in part.removesuffix("\n").splitlines(keepends=True)]
        cell["source"] = lines if isinstance(cell["source"], list) else "".join(lines)
    left = tuple(_placed(each, program.splitlines()) for each in done.left)
    before, after = (_shown(each) for each in (program, done.text))
    whole = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n" if done.text != program else text
    return replace(done, text=whole, left=left, before=before, after=after)


def _python(source: str) -> str:
    """The lines of a cell with IPython's own as statements without effect."""
    lines = source.splitlines()
    whole = source.lstrip().startswith("%%") and not _is_python("\n".join(lines[1:]))
    made = []
    for line in lines:
        inner = line.lstrip()
        own = whole or inner.startswith(("%", "!", "?")) or (inner.endswith("?") and "#" not in inner)
        made.append(f"{line[: len(line) - len(inner)]}{OWN}{inner}" if own and inner else line)
    return "\n".join(made)


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _own(line: str) -> str:
    """A line of IPython's own as it was."""
    return line.replace(OWN, "", 1) if line.lstrip().startswith(OWN) else line


def _shown(program: str) -> str:
    return "".join(_own(line) for line in program.splitlines(keepends=True)).replace(CELL, "# a cell")


def _placed(left: Left, lines: Sequence[str]) -> Left:
    """The line within its cell."""
    before = [k for k, line in enumerate(lines[: left.line], start=1) if line == CELL]
    return replace(left, cell=len(before), line=max(1, left.line - before[-1]) if before else left.line)
