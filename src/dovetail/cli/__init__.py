"""The command line. A command is imported when it is asked for; heavy libraries are imported inside it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import dovetail
from dovetail.cli.commands import Commands
from dovetail.cli.exit_code import ExitCode, one_line

app = typer.Typer(
    cls=Commands,
    help="Mixed-integer optimisation with trained neural networks inside, the networks left alone.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dovetail {dovetail.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run a command; dovetail's own errors become one line and exit code 2."""
    try:
        app()
    except dovetail.DovetailError as error:
        typer.echo(f"dovetail: {one_line(error)}", err=True)
        sys.exit(ExitCode.BAD_INPUT)
