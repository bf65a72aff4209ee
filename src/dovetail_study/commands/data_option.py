"""Where the commands that repeat the paper find its data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data", envvar="DOVETAIL_DATA", help="Folder with the real data; without it, look-alike data."
    ),
]
