"""The command line. Heavy libraries are imported inside the commands, so that --help answers at once."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import typer

import dovetail

app = typer.Typer(
    help="Mixed-integer optimisation with trained neural networks inside, the networks left alone.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data", envvar="DOVETAIL_DATA", help="Folder with the real data; without it, look-alike data."
    ),
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
        list[str], typer.Argument(help="e1 e2 e3 e4 e5 theory sensitivity, or all.", show_default=False)
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Small instances, short limits: minutes.")] = False,
    data: DataFolder = None,
    seeds: Annotated[str | None, typer.Option(help="Such as 42,123; default: the paper's five.")] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds per run; default: the paper's 300.")
    ] = None,
    baseline_limit: Annotated[
        float | None, typer.Option(help="Seconds for big-M; default: the time limit.")
    ] = None,
    methods: Annotated[str | None, typer.Option(help="Only these, such as paper,big-m.")] = None,
    networks: Annotated[str | None, typer.Option(help="Only these, such as 2x16,lstm.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for results, figures and the page.")] = Path("bench"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the results file in --out.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at the same time, each on one core.")] = 1,
    device: Annotated[str | None, typer.Option(help="Where networks are trained and stepped: cuda.")] = None,
) -> None:
    """Repeat the paper's experiments and judge its claims; interrupted, it goes on with --resume."""
    from dovetail.experiments.command import run

    finished = run(
        experiments, quick=quick, data=data, seeds=seeds, time_limit=time_limit,
        baseline_limit=baseline_limit, methods=methods, networks=networks, out=out, resume=resume, jobs=jobs,
        device=device,
    )  # fmt: skip
    if not finished:
        raise typer.Exit(130)


@app.command("list")
def list_parts() -> None:
    """List methods, engines, sub-solvers, predictors and problems that are here."""
    from dovetail.experiments import EXPERIMENTS
    from dovetail.methods import METHODS
    from dovetail.problems import PROBLEMS

    baseline = _installed("pyscipopt-ml", METHODS["big-m"], extra="scip")
    _section("methods", {**METHODS, "big-m": baseline})
    _section(
        "engines for the MIP step",
        {
            "highs": _installed("highspy", "any problem; the default where integers are left"),
            "piqp": _installed("piqp", "no integers; the default there"),
            "scip": _installed("pyscipopt", "any problem", extra="scip"),
        },
    )
    _section(
        "sub-solvers for the network step",
        {
            "ProjectedGradient": "Adam or plain gradient steps, each followed by a projection",
            "LogBarrier": "Newton-CG or L-BFGS-B on a log barrier; no equalities on outputs",
        },
    )
    _section(
        "models that stay where they are",
        {
            "highspy.Highs": _installed("highspy", "and .mps, .mps.gz, .lp files by dovetail.read"),
            "pyscipopt.Model": _installed("pyscipopt", "indicator, And and Or constraints too", extra="scip"),
            "gurobipy.Model": _installed("gurobipy", "indicator constraints too", extra="gurobi"),
            "Pyomo": _installed("pyomo", "a ConcreteModel or a Block", extra="pyomo"),
            "linopy.Model": _installed("linopy", "indicator constraints too", extra="linopy"),
        },
    )
    _section(
        "predictors",
        {
            "torch.nn.Module": _installed("torch", "any module that maps (n, d) to (n, q)"),
            "ONNX": _installed("onnx", "a .onnx file or a ModelProto, opset 13 to 28", extra="onnx"),
            "scikit-learn": _installed(
                "scikit-learn", "MLPs, linear and logistic models, scalers, pipelines", extra="sklearn"
            ),
            "skorch": _installed("skorch", "a trained net, as its torch module"),
            "Keras": _installed("keras", "models on the torch backend"),
            "callable": "any f(X) -> Y on numpy batches, gradients by differences",
        },
    )
    _section("problems", PROBLEMS)
    _section("experiments", EXPERIMENTS)


def _section(title: str, entries: dict[str, str]) -> None:
    typer.echo(f"{title}:")
    width = max(len(name) for name in entries)
    for name, text in entries.items():
        typer.echo(f"  {name:<{width}}  {text}")
    typer.echo()


def _installed(package: str, text: str, extra: str | None = None) -> str:
    try:
        return f"{text} ({package} {version(package)})"
    except PackageNotFoundError:
        fix = f'pip install "dovetail[{extra}]"' if extra else f"pip install {package}"
        return f"{text}; not installed: {fix}"


def main() -> None:
    """Run a command; dovetail's own errors become one line and exit code 2."""
    try:
        app()
    except dovetail.DovetailError as error:
        typer.echo(f"dovetail: {error}", err=True)
        sys.exit(2)
