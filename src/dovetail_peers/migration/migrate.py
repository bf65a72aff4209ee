"""A program written for a peer, rewritten for dovetail."""

from __future__ import annotations

import ast
import difflib
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

from dovetail.core.errors import OptionError
from dovetail_peers.migration.program import Edit, PeerProgram, SourceBytes
from dovetail_peers.migration.settings import READS, START, Left
from dovetail_peers.migration.solves import SolveCalls, Terminations

PEERS = ("gurobi_ml", "pyscipopt_ml", "omlt")
PLACE = "dovetail.compat"


@dataclass(frozen=True)
class Migration:
    """The new text, the number of rewritten lines, and the remaining changes."""

    text: str
    imports: int
    solves: int
    left: tuple[Left, ...]
    before: str
    """The program as it was; of a notebook the code."""
    after: str

    def diff(self, name: str) -> str:
        """What changes, as a unified diff."""
        old, new = (part.splitlines(keepends=True) for part in (self.before, self.after))
        return "".join(difflib.unified_diff(old, new, name, f"{name} (dovetail)"))


def migrate(text: str, name: str = "the program") -> Migration:
    """Imports and solve calls rewritten; everything that speaks of the solver's own run is listed.

    >>> print(migrate("from gurobi_ml import add_predictor_constr\\n").text, end="")
    from dovetail.compat.gurobi_ml import add_predictor_constr
    """
    try:
        program = PeerProgram(text)
    except SyntaxError as fault:
        raise OptionError(f"{name} is no Python program: line {fault.lineno}: {fault.msg}.") from fault
    source, tree = program.source, program.tree
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    changed = [edit for node in imports for edit in import_edits(source, node)]
    changed += [edit for call in program.all(ast.Call) for edit in imported_by_name(source, call)]
    if not changed and any(f"{module}.".startswith(f"{PLACE}.") for module in program.imported.values()):
        return Migration(text, 0, 0, (), text, text)  # it has been rewritten before
    if not changed:
        raise OptionError(f"{name} imports none of gurobi_ml, pyscipopt_ml and omlt: nothing to change.")
    calls = SolveCalls(program, _free_name(tree))
    solves = list(calls.edits())
    ends = Terminations(program, calls)
    ended = list(ends.edits())
    left = [*calls.left, *ends.left, *_unknown(imports), *_read(program, calls.solved, ends.rewritten)]
    if not solves and not calls.left:
        left.append(Left(1, "no solve call was found", "result = dovetail.solve(model)"))
    added = [_import_of_dovetail(source, tree, solves)] if solves and not _imports_dovetail(tree) else []
    whole = source.edited([*changed, *solves, *ended, *added])
    told = tuple(sorted(left, key=lambda each: each.line))
    return Migration(whole, len(changed), len(solves), told, text, whole)


def _free_name(tree: ast.AST) -> str:
    """`result`, unless the program uses this name."""
    taken = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return next(name for name in ("result", "dovetail_result", "result_of_dovetail") if name not in taken)


def _imports_dovetail(tree: ast.Module) -> bool:
    names = (alias for node in tree.body if isinstance(node, ast.Import) for alias in node.names)
    return any(alias.name == "dovetail" and alias.asname is None for alias in names)


def _import_of_dovetail(source: SourceBytes, tree: ast.Module, solves: list[Edit]) -> Edit:
    """After the last import at the top of the file before the first solve: notebooks have imports
    everywhere."""
    top = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    first = min(edit.start for edit in solves)
    before = [node for node in top if source.span(node)[1] <= first]
    return source.line_after((before or top or tree.body)[-1 if before else 0], "import dovetail")


def _unknown(imports: list[ast.Import | ast.ImportFrom]) -> Iterator[Left]:
    for node in imports:
        if isinstance(node, ast.ImportFrom) and peer_of(node.module) and node.level == 0:
            yield from unknown_names(node)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tensorflow"):
            yield Left(node.lineno, "tensorflow", "import keras, with KERAS_BACKEND=torch in the environment")


def _read(program: PeerProgram, models: set[str], rewritten: set[int]) -> Iterator[Left]:
    """The attributes of solved models and of Pyomo's results that are rewritten."""
    for node in program.all(ast.Attribute):
        if id(node) in rewritten:
            continue
        if node.attr in READS and program.text(node.value) in models:
            yield Left(node.lineno, program.text(node), READS[node.attr])
        elif node.attr == "Start" and isinstance(node.ctx, ast.Store):
            yield Left(node.lineno, program.text(node), START)  # from gurobipy's variables
        elif node.attr == "termination_condition":
            yield Left(node.lineno, program.text(node), "result.status and result.stop_reason")


def peer_of(module: str | None) -> str | None:
    """The peer that a module belongs to."""
    root = _installed(module).split(".")[0]
    return root if root in PEERS else None


def _installed(module: str | None) -> str:
    """The module's name if the peer is installed: programs in its own repository import src.peer."""
    return (module or "").removeprefix("src.")


def import_edits(source: SourceBytes, node: ast.Import | ast.ImportFrom) -> Iterator[Edit]:
    """The edit of one import of a peer."""
    if isinstance(node, ast.ImportFrom):
        if peer_of(node.module) and node.level == 0:
            yield source.part_replaced(node, str(node.module), f"{PLACE}.{_installed(node.module)}")
        return
    if any(peer_of(alias.name) for alias in node.names):
        yield source.replaced(node, "; ".join(dict.fromkeys(map(_one_import, node.names))))


def imported_by_name(source: SourceBytes, call: ast.Call) -> Iterator[Edit]:
    """The edit of `importlib.import_module("peer")`."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    given = call.args[0] if call.args else None
    if name == "import_module" and isinstance(given, ast.Constant) and peer_of(str(given.value)):
        yield source.replaced(given, f'"{PLACE}.{_installed(str(given.value))}"')


def _one_import(alias: ast.alias) -> str:
    """`import a.b` binds a, whose modules are there once it is imported."""
    peer = peer_of(alias.name)
    if peer is None:
        return f"import {_as_written(alias)}"
    if alias.asname is not None:
        return f"import {PLACE}.{_installed(alias.name)} as {alias.asname}"
    return f"import {PLACE}.{peer} as {peer}"


def _as_written(alias: ast.alias) -> str:
    return alias.name if alias.asname is None else f"{alias.name} as {alias.asname}"


def unknown_names(node: ast.ImportFrom) -> Iterator[Left]:
    """Names that dovetail's module lacks; empty if its library is not installed."""
    try:
        importlib.import_module(f"{PLACE}.{peer_of(node.module)}")
    except ImportError:
        return
    place = f"{PLACE}.{_installed(node.module)}"
    try:
        module = importlib.import_module(place)
    except ImportError:
        yield Left(node.lineno, f"the module {node.module}", "there is none; see docs/migration.md")
        return
    for alias in node.names:
        if alias.name != "*" and not _has(module, alias.name):
            yield Left(node.lineno, alias.name, f"{place} has none; see docs/migration.md")


def _has(module: ModuleType, name: str) -> bool:
    """Whether a module has a name; also for a library that cannot be imported here, such as Keras without its
    backend: the program is read, not run."""
    try:
        return hasattr(module, name)
    except ImportError:
        return True
