"""`dovetail init`: an example to start from."""

from __future__ import annotations

from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Annotated

import typer

from dovetail.core.errors import OptionError
from dovetail.core.files import require_writable, write_file


def init(
    folder: Annotated[
        Path, typer.Argument(help="Created if it does not exist.", show_default="here")
    ] = Path(),
) -> None:
    """Write a small problem in files, commented and complete: a model, a network, and a problem.toml."""
    for path in write_example(folder):
        typer.echo(f"wrote {path}")
    typer.echo(f"\nNow: dovetail solve {folder / 'problem.toml'}")


TEXTS = ("problem.toml", "plan.lp", "training.csv")
NETWORK = "strength.pt"

WEIGHTS = {
    "0.weight": [
        [-0.00404, -0.0026, 0.01347],
        [-0.005, -0.00249, -0.00986],
        [0.00059, 0.00123, -0.00377],
        [-0.00047, 0.00214, 0.00095],
        [-0.00375, 0.00043, -0.00393],
        [-0.00035, 0.00112, -0.00008],
    ],
    "0.bias": [0.18, 3.161, -0.041, -0.529, 2.203, -0.216],
    "2.weight": [[-6.965, -2.978, 0.701, 2.219, -5.579, 2.531]],
    "2.bias": [33.399],
}
"""Weights of a 3-6-1 ReLU network trained on training.csv, as text, because training would give another
network on every machine."""


def write_example(folder: Path) -> list[Path]:
    """Write the example into a folder, which is created; existing files are not replaced."""
    places = [folder / name for name in (*TEXTS, NETWORK)]
    for place in places:
        if place.exists() or place.is_symlink():
            raise OptionError(
                f"{place} exists already; give a folder without this file: dovetail init FOLDER."
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise OptionError(f"the folder {folder} cannot be made: {reason.strerror}.") from None
    for place in places:
        require_writable(place)
    texts = files("dovetail.problem_file") / "example"
    written = [write_file(folder / name, (texts / name).read_bytes()) for name in TEXTS]
    return [*written, write_file(folder / NETWORK, _network())]


def _network() -> bytes:
    import torch

    whole = BytesIO()
    torch.save({name: torch.tensor(values, dtype=torch.float64) for name, values in WEIGHTS.items()}, whole)
    return whole.getvalue()
