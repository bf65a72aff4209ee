"""Where the default method spends its time: engines, networks, the check, and Python in between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import dovetail as dt
from dovetail_study.experiment import ResultTable
from dovetail_study.problems.diet import diet
from dovetail_study.problems.dispatch import dispatch
from dovetail_study.problems.function import function
from dovetail_study.problems.tree import tree
from dovetail_study.problems.water import water
from dovetail_study.problems.wine import wine

SECONDS = 10.0
"""At most, for each problem: the table is about shares, not about times."""
WANTED = 0.2
"""Share of Python, at most: the work belongs to engines and networks."""


def run(data: Path | None, seconds: float = SECONDS) -> ResultTable:
    """One solve each; a short one before it, so that no import is counted."""
    table = ResultTable(
        "assembly",
        f"Where the default method spends its time (at most {seconds:g} s each, one thread, "
        f"{'real' if data else 'look-alike'} data)",
        ["problem", "status", "seconds", "engines", "networks", "check", "Python"],
    )
    shares = {}
    for name, build in _problems(data).items():
        problem = build()
        dt.solve(problem, time_limit=0.5, log=False)
        result = dt.solve(problem, time_limit=seconds, log=False)
        part = result.profile.shares()
        shares[name] = part["rest"] + part["subsolver"]
        cells = [part["engine"], part["network"], part["check"], shares[name]]
        shown = [f"{100 * share:.1f} %" for share in cells]
        table.rows.append([name, result.status.value, f"{result.seconds:.1f}", *shown])
    above = [name for name, share in shares.items() if share > WANTED]
    table.reading = (
        "*Engines*: HiGHS and SCIP, loading and reading their programs included. *Networks*: forward and "
        "backward passes of the search. *Check*: completing and checking candidates, the predictors' own "
        "passes included. *Python*: everything else. Wanted of Python: at most 20 %; above it: "
        f"{', '.join(above) or 'none'}. "
        "Repeat with `python -m benchmarks assembly [--data DIR]`."
    )
    return table


def _problems(data: Path | None) -> dict[str, Callable[[], dt.Problem]]:
    return {
        "water n = 25, 2x16": lambda: water(25, "2x16", data=data).problem,
        "water n = 100, 2x16": lambda: water(100, "2x16", data=data).problem,
        "water n = 400, 2x16": lambda: water(400, "2x16", data=data).problem,
        "wine": lambda: wine(data=data).problem,
        "function": lambda: function().problem,
        "diet": lambda: diet(data=data).problem,
        "dispatch": lambda: dispatch().problem,
        "tree": lambda: tree(data=data).problem,
    }
