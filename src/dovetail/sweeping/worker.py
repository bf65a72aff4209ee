"""A process that solves one case after the other, as long as it is given any."""

from __future__ import annotations

import json
import signal
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Any

from dovetail.core.errors import OptionError
from dovetail.run.process_workers import end_with
from dovetail.sweeping.build_function import BuildFunction
from dovetail.sweeping.cases import Case
from dovetail.sweeping.row import SweepRow

LONGEST_ERROR = 2000
"""Characters of an error's text: enough for a message with names, too few for a whole array."""


def serve(channel: Connection, function: BuildFunction, keep: bool) -> None:
    """Say "" when ready, or why not; then take cases and give rows, until nobody is there to give any."""
    for number in (signal.SIGINT, signal.SIGTERM):  # they are for the one who started us
        signal.signal(number, signal.SIG_IGN)
    end_with(channel.fileno())
    try:
        build = function.load()
        _use_one_thread()
    except Exception as reason:
        channel.send_bytes(_said(reason).encode())
        return
    channel.send_bytes(b"")
    while True:
        try:
            case: Case = json.loads(channel.recv_bytes())
        except (EOFError, OSError):
            return
        row = solved(function.name, build, case, keep)
        try:
            channel.send_bytes(row.to_line().encode())
        except OSError:  # nobody wants it any more
            return


def solved(name: str, build: Callable[..., Any], case: Case, keep: bool) -> SweepRow:
    """The row of one case, solved here and now; whatever `build` or `solve` raise is in it."""
    from dovetail.solving.solve import solve

    begin = perf_counter()
    stage = "build"
    try:
        model, options = _model_and_options(build(**case))
        build_seconds = perf_counter() - begin
        stage = "solve"
        result = solve(model, **{"log": False, "load": False, **options})
        return SweepRow.solved(case, name, result, build_seconds, keep=keep)
    except (Exception, SystemExit) as reason:
        return SweepRow(case, name, error=f"{stage}: {_said(reason)}")


def _model_and_options(built: Any) -> tuple[Any, Mapping[str, Any]]:
    """What `build` returned: a model, or a model and keywords of `solve`."""
    if not isinstance(built, tuple):
        return built, {}
    if len(built) != 2 or not isinstance(built[1], Mapping):
        raise OptionError(
            "build returned a tuple; give a problem, or a problem and a mapping of keywords for solve."
        )
    return built


def _use_one_thread() -> None:
    """Of torch and numpy: as many processes as cores run beside this one."""
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)
    threadpool_limits(limits=1)


def _said(reason: BaseException) -> str:
    """An error in one line, and where it was raised."""
    text = "".join(traceback.format_exception_only(reason)).strip()
    frames = traceback.extract_tb(reason.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return text[:LONGEST_ERROR] + where
