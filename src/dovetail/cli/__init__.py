"""The command line. Heavy libraries are imported inside the commands, so that --help answers at once."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import dovetail
from dovetail_study.commands.bench_command import bench
from dovetail.cli.check_command import check
from dovetail_study.commands.demo_command import demo
from dovetail.cli.exit_code import ExitCode
from dovetail.cli.init_command import init
from dovetail.cli.list_command import list_parts
from dovetail.cli.migrate_command import migrate
from dovetail.cli.one_line import one_line
from dovetail.cli.report_command import report
from dovetail.cli.solve_command import solve

app = typer.Typer(
    help="Mixed-integer optimisation with trained neural networks inside, the networks left alone.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command, name in (
    (demo, "demo"), (init, "init"), (solve, "solve"), (check, "check"), (report, "report"),
    (list_parts, "list"), (bench, "bench"), (migrate, "migrate"),
):  # fmt: skip
    app.command(name)(command)


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
