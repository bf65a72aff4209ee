"""Imports of the peers, rewritten to dovetail's modules of the same names."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from types import ModuleType

from dovetail_peers.migration.edits import Edit, Source
from dovetail_peers.migration.left import Left

PEERS = ("gurobi_ml", "pyscipopt_ml", "omlt")
PLACE = "dovetail.compat"


def peer_of(module: str | None) -> str | None:
    """The peer that a module belongs to."""
    root = _installed(module).split(".")[0]
    return root if root in PEERS else None


def _installed(module: str | None) -> str:
    """The module's name where the peer is installed: programs in its own repository import src.peer."""
    return (module or "").removeprefix("src.")


def import_edits(source: Source, node: ast.Import | ast.ImportFrom) -> Iterator[Edit]:
    """The edit of one import, if it is of a peer."""
    if isinstance(node, ast.ImportFrom):
        if peer_of(node.module) and node.level == 0:
            listed = ", ".join(map(_as_written, node.names))
            yield source.replaced(node, f"from {PLACE}.{_installed(node.module)} import {listed}")
        return
    if any(peer_of(alias.name) for alias in node.names):
        yield source.replaced(node, "; ".join(dict.fromkeys(map(_one_import, node.names))))


def imported_by_name(source: Source, call: ast.Call) -> Iterator[Edit]:
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
    """Names that dovetail's module does not have; nothing where its library is not installed."""
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
    """Whether a module has a name; also that of a library which cannot be imported here, as Keras without
    its backend: the program is read, not run."""
    try:
        return hasattr(module, name)
    except ImportError:
        return True
