"""`dovetail init`: an example to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def init(
    folder: Annotated[Path, typer.Argument(help="It is made if need be.", show_default="here")] = Path(),
) -> None:
    """Write a small problem in files, commented and complete: a model, a network, and a problem.toml."""
    from dovetail.problem_file.example_files import write_example

    for path in write_example(folder):
        typer.echo(f"wrote {path}")
    typer.echo(f"\nNow: dovetail solve {folder / 'problem.toml'}")
