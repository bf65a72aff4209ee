"""`dovetail migrate`: a program written for a peer, rewritten."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli.exit_code import ExitCode, one_line


def migrate(
    program: Annotated[
        Path, typer.Argument(help="A program or a notebook written for gurobi_ml, pyscipopt_ml or omlt.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Where to write it; it may be the program itself.", show_default="printed"),
    ] = None,
    diff: Annotated[bool, typer.Option("--diff", help="Print what changes, instead of the program.")] = False,
) -> None:
    """Rewrite the imports and solve calls of a program, and list the changes that remain to be made by hand.

    The program is read, not run. The exit code is 0 if nothing remains and 1 if something does. A program
    that has been rewritten before is left as it is.
    """
    from dovetail.core.errors import OptionError
    from dovetail.core.files import write_file
    from dovetail.core.words import several
    from dovetail_peers.migration.migrate import migrate as rewritten
    from dovetail_peers.migration.notebook import migrate_notebook

    try:
        text = program.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as reason:
        raise OptionError(f"{program} cannot be read: {reason}.") from reason
    done = (migrate_notebook if program.suffix == ".ipynb" else rewritten)(text, str(program))
    if diff or out is None:
        typer.echo(done.diff(str(program)) if diff else done.text, nl=False)
    if out is not None:
        write_file(out, done.text)
    if done.text == text:
        return
    imports, solves = several(done.imports, "import"), several(done.solves, "solve call")
    typer.echo(f"{program}: {imports} and {solves} rewritten", err=True)
    for each in done.left:
        typer.echo(f"  by hand: {one_line(each)}", err=True)
    raise typer.Exit(ExitCode.NOTHING_FOUND if done.left else ExitCode.FINE)
