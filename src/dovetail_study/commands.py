"""The commands of the study: `dovetail bench` and `dovetail demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli.exit_code import exit_code, interrupted
from dovetail.run.environment import Interrupts
from dovetail_study import EXPERIMENTS

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
    from dovetail_study.bench import collect, run, tell

    if merge:
        collect(experiments, merge, out=out, mix_commits=mix_commits)
    if report_only or (merge and not resume):
        tell(experiments, out=out)
        return
    with Interrupts(at_once=True):
        finished = run(
            experiments, quick=quick, data=data, seeds=seeds, time_limit=time_limit,
            baseline_limit=baseline_limit, writing_limit=writing_limit, memory_limit=memory_limit,
            methods=methods, networks=networks, out=out, resume=resume, mix_commits=mix_commits, jobs=jobs,
            beside=beside, device=device,
        )  # fmt: skip
    if not finished:
        raise typer.Exit(interrupted())


def demo(
    samples: Annotated[int, typer.Option(help="Number of water samples.")] = 50,
    network: Annotated[str, typer.Option(help="LxW such as 2x16, conv1d, residual or lstm.")] = "2x16",
    data: DataFolder = None,
    time_limit: Annotated[float, typer.Option(help="Seconds for the solve.")] = 15.0,
    seed: Annotated[int, typer.Option(help="For data, training and solve.")] = 42,
    report: Annotated[Path | None, typer.Option(help="Write the result as an HTML page.")] = None,
) -> None:
    """Solve the water-treatment problem and explain the answer."""
    from dovetail_study.demo import run

    result = run(samples=samples, network=network, data=data, time_limit=time_limit, seed=seed, report=report)
    raise typer.Exit(exit_code(result))
