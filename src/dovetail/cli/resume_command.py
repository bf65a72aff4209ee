"""`dovetail resume`: continues a solve from its checkpoint and writes the result to files."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from dovetail.cli.solve_command import (
    CertificateOption,
    PredictorOption,
    QuietOption,
    ReportOption,
    SolutionOption,
    TrustOption,
    described,
    leaving_at_once,
    outputs_of,
    solve_and_write,
)
from dovetail.core.errors import OptionError


def resume(
    checkpoint: Annotated[Path, typer.Argument(help="The file that --checkpoint named.")],
    problem: Annotated[
        Path | None, typer.Argument(help="The problem, if its files were moved or are not known.")
    ] = None,
    predictor: PredictorOption = None,
    solution: SolutionOption = None,
    report: ReportOption = None,
    certificate: CertificateOption = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds from now on; default what is left of the first limit.")
    ] = None,
    trust: TrustOption = False,
    quiet: QuietOption = False,
) -> None:
    """Continue a solve from its checkpoint, and write checkpoints to the same file.

    The problem is read again from the files that `dovetail solve` named; another problem is refused.
    """
    from dovetail.run.checkpoint import read_checkpoint
    from dovetail.solving.resume import resume as continued

    with leaving_at_once():
        known = read_checkpoint(checkpoint)
        if problem is None and not known.command:
            raise OptionError(f"{checkpoint} names no files; give the problem: dovetail resume FILE PROBLEM.")
        named = (problem, predictor) if problem is not None else (Path(known.command[0]), known.command[1:])
        description = described(*named)
        outputs = outputs_of(description, solution, report, certificate)
        ready = description.problem(trust=trust)
        method: dict[str, Any] = {} if known.method else {"method": description.method()}
    work = partial(continued, checkpoint, ready, time_limit=time_limit, log=not quiet, **method)
    raise typer.Exit(solve_and_write(work, outputs, quiet))
