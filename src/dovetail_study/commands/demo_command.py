"""`dovetail demo`: the water-treatment problem, solved and explained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli.exit_code import exit_code
from dovetail_study.commands.data_option import DataFolder


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
