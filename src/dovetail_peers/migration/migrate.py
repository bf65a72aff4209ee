"""A program written for a peer, rewritten for dovetail."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dovetail.core.errors import OptionError
from dovetail_peers.migration.edits import Edit, Source
from dovetail_peers.migration.imports import import_edits, imported_by_name, peer_of, unknown_names
from dovetail_peers.migration.left import READS, START, Left
from dovetail_peers.migration.program import Program
from dovetail_peers.migration.solves import SolveCalls
from dovetail_peers.migration.terminations import Terminations


@dataclass(frozen=True)
class Migration:
    """The new text, how many lines it took, and what is left to do."""

    text: str
    imports: int
    solves: int
    left: tuple[Left, ...]


def migrate(text: str, name: str = "the program") -> Migration:
    """Imports and solve calls rewritten; everything that speaks of the solver's own run is listed.

    >>> print(migrate("from gurobi_ml import add_predictor_constr\\n").text, end="")
    from dovetail.compat.gurobi_ml import add_predictor_constr
    """
    try:
        program = Program(text)
    except SyntaxError as fault:
        raise OptionError(f"{name} is no Python program: line {fault.lineno}: {fault.msg}.") from fault
    source, tree = program.source, program.tree
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    changed = [edit for node in imports for edit in import_edits(source, node)]
    changed += [edit for call in program.all(ast.Call) for edit in imported_by_name(source, call)]
    if not changed:
        raise OptionError(
            f"{name} imports none of gurobi_ml, pyscipopt_ml and omlt: nothing is to be changed."
        )
    calls = SolveCalls(program, _free_name(tree))
    solves = list(calls.edits())
    ends = Terminations(program, calls)
    ended = list(ends.edits())
    left = [*calls.left, *ends.left, *_unknown(imports), *_read(program, calls.solved, ends.rewritten)]
    if not solves and not calls.left:
        left.append(Left(1, "no solve call was found", "result = dovetail.solve(model)"))
    added = [_import_of_dovetail(source, tree, solves)] if solves and not _imports_dovetail(tree) else []
    whole = source.edited([*changed, *solves, *ended, *added])
    return Migration(whole, len(changed), len(solves), tuple(sorted(left, key=lambda each: each.line)))


def _free_name(tree: ast.AST) -> str:
    """`result`, unless the program has one."""
    taken = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return next(name for name in ("result", "dovetail_result", "result_of_dovetail") if name not in taken)


def _imports_dovetail(tree: ast.Module) -> bool:
    names = (alias for node in tree.body if isinstance(node, ast.Import) for alias in node.names)
    return any(alias.name == "dovetail" and alias.asname is None for alias in names)


def _import_of_dovetail(source: Source, tree: ast.Module, solves: list[Edit]) -> Edit:
    """Behind the last import at the top of the file before the first solve: notebooks have them all along."""
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


def _read(program: Program, models: set[str], rewritten: set[int]) -> Iterator[Left]:
    """What is read of the models that dovetail solves, and of Pyomo's results."""
    for node in program.all(ast.Attribute):
        if id(node) in rewritten:
            continue
        if node.attr in READS and program.text(node.value) in models:
            yield Left(node.lineno, program.text(node), READS[node.attr])
        elif node.attr == "Start" and isinstance(node.ctx, ast.Store):
            yield Left(node.lineno, program.text(node), START)  # of gurobipy's variables
        elif node.attr == "termination_condition":
            yield Left(node.lineno, program.text(node), "result.status and result.stop_reason")
