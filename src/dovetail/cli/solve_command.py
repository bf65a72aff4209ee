"""`dovetail solve`: solves a problem in files and writes the result to files."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli.exit_code import ExitCode, exit_code, interrupted, one_line
from dovetail.methods import METHODS

if TYPE_CHECKING:
    from dovetail.cli.outputs import Outputs
    from dovetail.core.problem import Problem
    from dovetail.problem_file.description import FileDescription
    from dovetail.run.result import Result

ProblemPath = Annotated[Path, typer.Argument(help="A problem.toml, or a model: .mps, .lp, also as .gz.")]
PredictorOption = Annotated[
    list[str] | None,
    typer.Option(
        "--predictor", "-p", metavar="'FILE:INPUTS->OUTPUTS'",
        help="Connect variables of a model file by a predictor. Keep the quotes; repeat the option for more.",
    ),
]  # fmt: skip
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print one line instead of the log.")]
SolutionOption = Annotated[Path | None, typer.Option(help="Write the result to this JSON file.")]
ReportOption = Annotated[Path | None, typer.Option(help="Write the result as an HTML page.")]
CertificateOption = Annotated[
    Path | None, typer.Option(help="Write the certificate of the bound, for `dovetail check`.")
]
TrustOption = Annotated[
    bool, typer.Option("--trust", help="Load predictors from files that can run code: pickles, .pt2.")
]


MOST = 20
"""Number of variables shown."""
LONGEST = 48
"""Largest number of characters of a name."""
SMALLEST = 1e-9
"""Smaller values count as 0 and are not shown."""


def solve(
    problem: ProblemPath,
    predictor: PredictorOption = None,
    solution: SolutionOption = None,
    report: ReportOption = None,
    certificate: CertificateOption = None,
    start: Annotated[Path | None, typer.Option(help="Begin from the solution in a result file.")] = None,
    method: Annotated[
        str | None,
        typer.Option(help='See "dovetail list methods".', autocompletion=lambda: [*METHODS]),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Time limit in seconds (inf: none); default 60.")
    ] = None,
    gap: Annotated[float | None, typer.Option(help="Stop when proved within this gap: 0.01 is 1 %.")] = None,
    target: Annotated[
        float | None, typer.Option(help="Stop at a solution with this objective or a better one.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the random numbers; default 0.")] = None,
    n_jobs: Annotated[
        int | None, typer.Option("--jobs", help="Number of parallel solves; default 1.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="Device for gradients, such as cuda.")] = None,
    log_file: Annotated[Path | None, typer.Option(help="Write the log to this file too.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Write the state to this file every minute, for `dovetail resume`.")
    ] = None,
    trust: TrustOption = False,
    quiet: QuietOption = False,
) -> None:
    """Solve a problem in files: a problem.toml, or a model and predictors that connect its variables.

    Options given here override those in the file. Ctrl-C ends the solve and writes the best solution.
    """
    given = {
        "time_limit": time_limit, "gap": gap, "target": target, "seed": seed, "n_jobs": n_jobs,
        "device": device, "log_file": log_file, "method": method,
    }  # fmt: skip
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    with leaving_at_once():
        description = described(problem, predictor)
        outputs = outputs_of(description, solution, report, certificate)
        options["checkpoint"] = _checkpoint(checkpoint, description, predictor)
        ready = description.problem(trust=trust)
        options = {"method": description.method(), **description.options, **options}
        options["start"] = _start(start or description.start)
    raise typer.Exit(solve_and_write(partial(_solve, ready, options, quiet), outputs, quiet))


def _checkpoint(path: Path | None, description: FileDescription, predictor: list[str] | None) -> Any:
    """The option of the solve; the file names the problem by paths that hold in any folder."""
    if path is None:
        return None
    from dovetail.problem_file.description import with_whole_path
    from dovetail.run.checkpoint import CheckpointFile

    command = str(description.source.absolute()), *map(with_whole_path, predictor or ())
    return CheckpointFile(path, command=command)


def _solve(problem: Problem, options: dict[str, Any], quiet: bool) -> Result:
    import dovetail

    return dovetail.solve(problem, log=not quiet, **options)


def described(problem: Path, predictor: Sequence[str] | None) -> FileDescription:
    """The problem as its files describe it."""
    from dovetail.problem_file.description import FileDescription

    description = FileDescription.read(problem, predictor or ())
    description.require_options()
    return description


def outputs_of(
    description: FileDescription, solution: Path | None, report: Path | None, certificate: Path | None
) -> Outputs:
    """The files to write, which can be written."""
    from dovetail.cli.outputs import Outputs

    outputs = Outputs(
        solution or description.output("solution"),
        report or description.output("report"),
        certificate or description.output("certificate"),
    )
    outputs.require_writable(description.files)
    return outputs


def _start(path: Path | None) -> Any:
    from dovetail.solving.starts import start_of_file

    return None if path is None else start_of_file(path)


def solve_and_write(work: Callable[[], Result], outputs: Outputs, quiet: bool) -> ExitCode:
    """Do the `work` of a solve, write and print; whatever ends the solve, an existing result is written."""
    from dovetail.run.environment import Interrupts

    with Interrupts() as interrupts:  # a Ctrl-C during the writing of the files does not stop it
        result, failure = _result(work)
        if result is not None:
            _write_and_show(result, outputs, quiet)
    if isinstance(failure, KeyboardInterrupt):
        return interrupted()
    if failure is not None:
        typer.echo(f"dovetail: {type(failure).__name__}: {one_line(failure)}", err=True)
        return ExitCode.FAILED
    assert result is not None
    return interrupted() if interrupts.heard and result.stop_reason != "proved" else exit_code(result)


def _result(work: Callable[[], Result]) -> tuple[Result | None, BaseException | None]:
    """The result of a solve, or the result attached to its exception."""
    try:
        return work(), None
    except (Exception, KeyboardInterrupt) as failure:
        if not hasattr(failure, "result") and not isinstance(failure, KeyboardInterrupt):
            raise  # an option that cannot be, or a mistake of ours
        return getattr(failure, "result", None), failure


def _write_and_show(result: Result, outputs: Outputs, quiet: bool) -> None:
    """Write the result and print it; if writing fails, the printed values are the only output."""
    written: list[str] = []
    try:
        written = outputs.write(result)
    finally:
        tell([_headline(result)] if quiet else [*values(result), *written])


def _headline(result: Result) -> str:
    objective = "" if result.objective is None else f", objective {result.objective:.10g}"
    bound = "" if result.bound is None else f", bound {result.bound:.10g}"
    return f"{result.status.value}{objective}{bound}, {result.seconds:.1f} s"


@contextmanager
def leaving_at_once() -> Iterator[None]:
    """Ctrl-C inside ends the process at once. An exception might be caught by a library that is being
    imported."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is not signal.default_int_handler:
        yield  # a handler that the user has set, or an ignored Ctrl-C, stays
        return
    signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _leave(number: int, frame: object) -> None:
    with suppress(Exception):  # a closed pipe, or a print that the signal fell into
        sys.stdout.flush()
    os.write(2, b"dovetail: interrupted before there was anything to save.\n")
    os._exit(ExitCode.INTERRUPTED)


def tell(lines: Iterable[str]) -> None:
    """Print lines; if standard output is closed or full, this and all further lines are dropped. ``dovetail
    solve ... | head`` ends with the exit code of the solve."""
    try:
        for line in lines:
            typer.echo(line)
    except OSError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - Python flushes it at its end


def values(result: Result) -> Iterator[str]:
    """The first nonzero variables."""
    if result.x is None:
        return
    shown = [(_name(result, j), value) for j, value in enumerate(result.x.tolist()) if abs(value) > SMALLEST]
    width = max((len(name) for name, _ in shown[:MOST]), default=0)
    yield f"values      {len(shown):,} of {result.x.size:,} variables are not 0"
    for name, value in shown[:MOST]:
        yield f"  {name:<{width}}  {value:.8g}"
    if len(shown) > MOST:
        yield f"  ... and {len(shown) - MOST:,} more"


def _name(result: Result, j: int) -> str:
    name = one_line(f"x[{j}]" if result.names is None else result.names[j])
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 3]}..."
