"""The command line. Heavy libraries are imported inside the commands, so that --help answers at once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

import dovetail
from dovetail.core.table import Table
from dovetail.experiments import EXPERIMENTS

app = typer.Typer(
    help="Mixed-integer optimisation with trained neural networks inside, the networks left alone.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data", envvar="DOVETAIL_DATA", help="Folder with the real data; without it, look-alike data."
    ),
]
MergedFiles = Annotated[
    list[Path] | None,
    typer.Option(help="Take over the rows of this results file into that in --out; runs only with --resume."),
]


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


@app.command()
def demo(
    samples: Annotated[int, typer.Option(help="Number of water samples.")] = 50,
    network: Annotated[str, typer.Option(help="LxW such as 2x16, conv1d, residual or lstm.")] = "2x16",
    data: DataFolder = None,
    time_limit: Annotated[float, typer.Option(help="Seconds for the solve.")] = 15.0,
    seed: Annotated[int, typer.Option(help="For data, training and solve.")] = 42,
    report: Annotated[Path | None, typer.Option(help="Write the result as an HTML page.")] = None,
) -> None:
    """Solve the water-treatment problem and explain the answer."""
    from dovetail.demo import run

    result = run(samples=samples, network=network, data=data, time_limit=time_limit, seed=seed, report=report)
    if result.stop_reason is dovetail.StopReason.INTERRUPT:
        raise typer.Exit(130)
    if result.x is None:
        raise typer.Exit(1)


@app.command()
def bench(
    experiments: Annotated[
        list[str],
        typer.Argument(
            help=f"{' '.join(EXPERIMENTS)}, or all.",
            autocompletion=lambda: [*EXPERIMENTS, "all"],
            show_default=False,
        ),
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Small instances, short limits: minutes.")] = False,
    data: DataFolder = None,
    seeds: Annotated[str | None, typer.Option(help="Such as 42,123; default: the paper's five.")] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds per run; default: the paper's 300.")
    ] = None,
    baseline_limit: Annotated[
        float | None, typer.Option(help="Seconds of SCIP for big-M; default: the time limit.")
    ] = None,
    writing_limit: Annotated[
        float | None, typer.Option(help="Seconds more for writing big-M's model; default: the same.")
    ] = None,
    memory_limit: Annotated[
        float | None,
        typer.Option(help="GB for each run of big-M; default: its share of what the machine has."),
    ] = None,
    methods: Annotated[str | None, typer.Option(help="Only these, such as paper,big-m.")] = None,
    networks: Annotated[str | None, typer.Option(help="Only these, such as 2x16,lstm.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for results, figures and the page.")] = Path("bench"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the results file in --out.")] = False,
    merge: MergedFiles = None,
    mix_commits: Annotated[
        bool, typer.Option("--mix-commits", help="Add to rows that another commit of the code made.")
    ] = False,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Run nothing: tables, verdicts, page of what is in --out.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at the same time, each on one core.")] = 1,
    beside: Annotated[
        int, typer.Option(min=0, help="Runs that other processes make meanwhile; every row says so.")
    ] = 0,
    device: Annotated[str | None, typer.Option(help="Where networks are trained and stepped: cuda.")] = None,
) -> None:
    """Repeat the paper's experiments and judge its claims; interrupted, it goes on with --resume."""
    from dovetail.experiments.command import collect, run, tell

    if merge:
        collect(experiments, merge, out=out, mix_commits=mix_commits)
    if report_only or (merge and not resume):
        tell(experiments, out=out)
        return
    finished = run(
        experiments, quick=quick, data=data, seeds=seeds, time_limit=time_limit,
        baseline_limit=baseline_limit, writing_limit=writing_limit, memory_limit=memory_limit,
        methods=methods, networks=networks, out=out, resume=resume, mix_commits=mix_commits, jobs=jobs,
        beside=beside, device=device,
    )  # fmt: skip
    if not finished:
        raise typer.Exit(130)


@app.command("list")
def list_parts(
    families: Annotated[
        list[str] | None,
        typer.Argument(
            help="Only these, such as methods engines.",
            autocompletion=lambda: [*_tables()],
            show_default=False,
        ),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="As docs/parts.md has it, whatever is installed.")
    ] = False,
) -> None:
    """List methods, engines, sub-solvers, models, predictors and problems that are here."""
    tables = _tables()
    for family in families or tables:
        if family not in tables:
            raise dovetail.OptionError(f"family {family!r} is not known; choose {', '.join(tables)}.")
        typer.echo("\n".join(_as_markdown(tables[family]) if markdown else _as_text(tables[family])))
        typer.echo()


def _tables() -> dict[str, Table[Any]]:
    """All families of parts; their tables are light."""
    from dovetail.methods import METHODS
    from dovetail.mip import ENGINES
    from dovetail.models import MODELS
    from dovetail.nn import SUB_SOLVERS
    from dovetail.predictors import PREDICTORS
    from dovetail.problems import PROBLEMS

    tables = (METHODS, ENGINES, SUB_SOLVERS, MODELS, PREDICTORS, PROBLEMS, EXPERIMENTS)
    return {f"{table.family}s": table for table in tables}


def _as_text(table: Table[Any]) -> Iterator[str]:
    yield f"{table.title}:"
    width = max(map(len, table))
    for part in table.values():
        here = part.availability()
        yield f"  {part.name:<{width}}  {part.text}{f' ({here})' if here else ''}"


def _as_markdown(table: Table[Any]) -> Iterator[str]:
    yield f"## {table.title[0].upper()}{table.title[1:]}"
    yield ""
    yield "| name | what it is for | needs |"
    yield "| --- | --- | --- |"
    for part in table.values():
        extra = f" (`dovetail[{part.extra}]`)" if part.extra else ""
        yield f"| `{part.name}` | {part.text} | {part.library}{extra} |"


def main() -> None:
    """Run a command; dovetail's own errors become one line and exit code 2."""
    try:
        app()
    except dovetail.DovetailError as error:
        typer.echo(f"dovetail: {error}", err=True)
        sys.exit(2)
