"""`dovetail list`: all parts, family by family."""

from __future__ import annotations

from collections.abc import Iterator
from pkgutil import resolve_name
from typing import Annotated, Any

import typer

from dovetail.core.errors import OptionError
from dovetail.core.table import Table

STUDY = ("dovetail_study.problems:PROBLEMS", "dovetail_study:EXPERIMENTS")
"""The tables of the study, which the library names without importing them."""


def list_parts(
    families: Annotated[
        list[str] | None,
        typer.Argument(
            help="Kinds of parts to list, for example: methods engines.",
            autocompletion=lambda: [*_tables()],
            show_default=False,
        ),
    ] = None,
) -> None:
    """List methods, engines, sub-solvers, models, predictors and problems that are installed."""
    tables = _tables()
    for family in families or tables:
        if family not in tables:
            raise OptionError(f"family {family!r} is not known; choose {', '.join(tables)}.")
        typer.echo("\n".join(_as_text(tables[family])))
        typer.echo()


def _tables() -> dict[str, Table[Any]]:
    """All tables of parts."""
    from dovetail.methods import METHODS
    from dovetail.mip import ENGINES
    from dovetail.models import MODELS
    from dovetail.nn import SUB_SOLVERS
    from dovetail.predictors import PREDICTORS

    tables = (METHODS, ENGINES, SUB_SOLVERS, MODELS, PREDICTORS, *map(resolve_name, STUDY))
    return {f"{table.family}s": table for table in tables}


def _as_text(table: Table[Any]) -> Iterator[str]:
    yield f"{table.title}:"
    width = max(map(len, table))
    for part in table.values():
        here = part.availability()
        yield f"  {part.name:<{width}}  {part.text}{f' ({here})' if here else ''}"
