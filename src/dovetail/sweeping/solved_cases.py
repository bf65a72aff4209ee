"""Cases on their way to rows: solved by processes, each of which solves one case after the other."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from dovetail.core.errors import OptionError
from dovetail.run.processes import CannotTravel, Lost, pooled
from dovetail.sweeping.cases import Case
from dovetail.sweeping.row import SweepRow

NOT_BEGUN = (
    "a process for build {name!r} {end} before it began: the program that is run is imported by every "
    'process, so put what it does, dovetail.sweep included, under `if __name__ == "__main__":`.'
)
LONGEST_ERROR = 2000
"""Characters of an error's text: enough for a message with names, too few for a whole array."""


def solved_cases(
    name: str, build: Callable[..., Any], cases: Sequence[Case], jobs: int, keep: bool
) -> Generator[SweepRow, None, None]:
    """Rows as they come, in any order, one for each case; closing the generator ends what still runs.

    A case that fails, or takes its process with it, is a row with an error; only what no case could survive
    is raised.
    """
    work, take = partial(solved, name, build, keep=keep), partial(next, iter(cases), None)
    try:
        with closing(pooled(work, take, jobs, program=True)) as answers:
            for case, row in answers:
                if not isinstance(row, Lost):
                    yield row
                elif row.begun:
                    yield SweepRow(case, name, error=f"its process {row}")
                else:
                    raise OptionError(NOT_BEGUN.format(name=name, end=row))
    except CannotTravel as reason:
        raise OptionError(f"build {name!r} cannot be imported by another process: {reason}") from None


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


def _said(reason: BaseException) -> str:
    """An error in one line, and where it was raised."""
    text = "".join(traceback.format_exception_only(reason)).strip()
    frames = traceback.extract_tb(reason.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return text[:LONGEST_ERROR] + where
