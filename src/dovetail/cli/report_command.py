"""`dovetail report`: result files as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import dovetail


def report(
    results: Annotated[list[Path], typer.Argument(help="Result files, as --solution writes them.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("report.html"),
) -> None:
    """Show a result as an HTML page, or several side by side; the page loads nothing from elsewhere."""
    from dovetail.cli.outputs import Outputs, read_result

    Outputs(report=output).require_writable(results)
    found = [read_result(path) for path in results]
    if len(found) == 1:
        typer.echo(f"report      {found[0].report(output)}")
        return
    named = dict(zip(map(str, results), found, strict=True))
    typer.echo(f"report      {dovetail.compare(named, output)}")
