"""The command line. Each command is imported when it is called, and imports heavy libraries inside."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pkgutil import resolve_name
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import dovetail
from dovetail.cli.exit_code import ExitCode, one_line

PLACES = {
    "demo": "dovetail_study.commands:demo",
    "init": "dovetail.cli.init_command:init",
    "solve": "dovetail.cli.solve_command:solve",
    "resume": "dovetail.cli.resume_command:resume",
    "check": "dovetail.cli.check_command:check",
    "report": "dovetail.cli.report_command:report",
    "list": "dovetail.cli.list_command:list_parts",
    "bench": "dovetail_study.commands:bench",
    "migrate": "dovetail_peers.migrate_command:migrate",
}
"""The function of each command, in the order in which `dovetail --help` shows them."""


class LazyCommands(Mapping[str, Any]):
    """The commands by name, imported on access."""

    def __getitem__(self, name: str) -> Any:
        alone = typer.Typer(add_completion=False)
        alone.command(name)(resolve_name(PLACES[name]))
        return typer.main.get_command(alone)

    def __iter__(self) -> Iterator[str]:
        return iter(PLACES)

    def __len__(self) -> int:
        return len(PLACES)


class Commands(TyperGroup):
    """The group of all commands; unused ones are not imported."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": LazyCommands()})


app = typer.Typer(
    cls=Commands,
    help="Mixed-integer optimisation with trained predictors, which are not rewritten as constraints.",
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
