"""`dovetail.resume`: continues a solve from its checkpoint."""

from __future__ import annotations

import inspect
import math
import os
from pathlib import Path
from typing import Any

from dovetail.core.errors import OptionError
from dovetail.core.options import time_limit_of
from dovetail.core.words import did_you_mean
from dovetail.problem_file.description import FileDescription
from dovetail.run.checkpoint import Checkpoint, CheckpointFile, read_checkpoint
from dovetail.run.result import Result
from dovetail.solving.solve import solve

OPTIONS = [
    name for name in inspect.signature(solve).parameters if name not in ("model", "start", "time_limit")
]
"""The options of a solve that a resumed one may change."""

SPENT = 0.01
"""A time limit of which only this fraction is left is over: a search ends before its limit, to leave time for
the last check."""


def resume(
    path: str | os.PathLike[str],
    model: Any = None,
    *,
    time_limit: float | None = None,
    trust: bool = False,
    **options: Any,
) -> Result:
    """Continue the solve whose checkpoint is in a file.

    The solve begins with the solution, the bound and the elapsed time of the checkpoint, and writes its
    checkpoints to the same file. Search trees are built again. A checkpoint of another problem is refused.
    The bound counts only if the fingerprint of the problem covers all predictors (a Python function has no
    fingerprint) and the same version of dovetail wrote it (docs/long_solves.md).

    Args:
        path: The file that `checkpoint=` named.
        model: The same model with the same predictors, built again. It may be left out if the solve was
            started with `dovetail solve`: the problem is then read from its files.
        time_limit: Seconds from now on; None for what is left of the first limit, inf for no limit.
        trust: Load predictors from files that can run code, as `dovetail solve --trust` does.
        **options: Options of `dovetail.solve` to change; others stay as they were.

    >>> import dovetail as dt, pathlib, tempfile
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, -1.0], upper=[3.0, 9.0], integer=[True, False]))
    >>> block = problem.add_predictor(dt.Square(), inputs=[0], outputs=[1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "run.dove"
    ...     first = dt.solve(problem, checkpoint=file, time_limit=10, log=False)
    ...     again = dt.resume(file, problem, log=False)
    >>> again.status.value, again.objective, again.seconds > first.seconds
    ('optimal', -6.0, True)
    """
    known = read_checkpoint(path)
    for name in options:
        if name not in OPTIONS:
            raise TypeError(
                f"resume() got an unexpected keyword argument {name!r}{did_you_mean(name, OPTIONS)}"
            )
    method = options.pop("method", known.method)
    if model is None:
        if not known.command:
            raise OptionError("the checkpoint names no files; give the model: dovetail.resume(path, model).")
        description = FileDescription.read(Path(known.command[0]), known.command[1:])
        model, method = description.problem(trust=trust), method or description.method()
    file = CheckpointFile(Path(path), command=known.command)
    if not method:
        raise OptionError("the solve had a method object; give it again: resume(..., method=...).")
    before = known.options
    given: dict[str, Any] = {
        "gap": before.gap, "absolute_gap": before.absolute_gap, "target": before.target, "seed": before.seed,
        "n_jobs": before.n_jobs, "device": before.device, "solutions": before.solutions,
        "distance": before.distance, "checkpoint": file,
    }  # fmt: skip
    limit = _seconds_left(known) if time_limit is None else time_limit_of(time_limit)
    return solve(model, method, time_limit=limit, start=known, **{**given, **options})


def _seconds_left(known: Checkpoint) -> float:
    limit = known.options.time_limit
    if math.isfinite(limit) and limit - known.seconds <= SPENT * limit:
        raise OptionError(
            f"the time limit of {limit:g} s is over after {known.seconds:.0f} s; give time_limit=, seconds "
            "from now on."
        )
    return limit - known.seconds
