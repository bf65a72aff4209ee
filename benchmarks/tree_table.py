"""Runs over tree ensembles as lines of a file, and both sides beside each other as a table."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from benchmarks.tree_runs import Answer, Asked, Steps
from dovetail.report.gains import relative_gap
from dovetail.run import record
from dovetail_study.experiment import NOTHING, ResultTable

MOMENTS = (5.0, 30.0, 60.0)
"""Seconds at which points are compared."""
SAME = 1e-4
"""Relative: the gap of an optimum, and more than the peer's right sides begin too late."""
NEAR = 0.01
"""Of the best that either found."""
NO_BOUND = 1e19
"""SCIP's infinity is 1e20."""
Runs = dict[Asked, Answer]


def written(asked: Asked, answer: Answer) -> str:
    """One line."""
    return json.dumps({"asked": asdict(asked), "answer": record.sayable(asdict(answer))})


def read(path: Path) -> Runs:
    """Of a file that may not be there yet; the last line may be half a line."""
    runs = Runs()
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            told = json.loads(line)
        except ValueError:
            continue
        answer = Answer(**told["answer"])
        numbers = {
            name: record.read(name, getattr(answer, name), float) for name in ("objective", "bound", "cpu")
        }
        steps = {name: _steps(name, getattr(answer, name)) for name in ("points", "bounds")}
        runs[Asked(**told["asked"])] = replace(answer, **numbers, **steps)
    return runs


def _steps(name: str, rows: Iterable[Iterable[float]]) -> Steps:
    return [(record.read(name, seconds, float), record.read(name, value, float)) for seconds, value in rows]


def value_at(steps: Steps, moment: float) -> float:
    """The last value by then; NaN where there is none."""
    return next((value for seconds, value in reversed(steps) if seconds <= moment), math.nan)


def seconds_to(steps: Steps, sign: float, value: float) -> float:
    """When a value as good as this was there; NaN where it never was."""
    return next((seconds for seconds, found in steps if sign * found <= sign * value), math.nan)


def behind(ours: Answer, theirs: Answer) -> list[float]:
    """The moments at which the peer's point is better than ours, or the only one."""
    sign, late = 1.0 if ours.sense == "min" else -1.0, []
    for moment in MOMENTS:
        mine, other = value_at(ours.points, moment), value_at(theirs.points, moment)
        if math.isnan(other):
            continue
        if math.isnan(mine) or sign * mine > sign * other + SAME * max(1.0, abs(other)):
            late.append(moment)
    return late


def table(runs: Runs) -> ResultTable:
    """Both sides of every instance, one under the other."""
    shown = ResultTable(
        "trees",
        "Tree ensembles",
        [
            "instance", "who", "first point s", "within 1 % s", "proved s",
            *(f"at {moment:g} s" for moment in MOMENTS), "bound", "build s", "CPU s", "remarks",
        ],
        reading=(
            "One thread. *Within 1 %*: of the best that either found. *Proved*: status optimal. dovetail's "
            "seconds begin with the call, SCIP's after its model is built (*build*), to its advantage. A "
            "remark marks a solution of SCIP's that `predict` or the check refuses. "
            "Repeat with `python -m benchmarks.trees --grid`."
        ),
    )  # fmt: skip
    instances = sorted({asked.instance for asked in runs})
    for instance in instances:
        sides = {asked: answer for asked, answer in runs.items() if asked.instance == instance}
        best = _best(sides.values())
        theirs = next((answer for asked, answer in sides.items() if asked.solve_seed is None), None)
        for asked in sorted(sides, key=lambda one: math.inf if one.solve_seed is None else one.solve_seed):
            late = behind(sides[asked], theirs) if theirs and asked.solve_seed is not None else []
            shown.rows.append(_row(asked, sides[asked], best, late))
    return shown


def summary(runs: Runs) -> ResultTable:
    """One row for each size: medians over seeds, ours / SCIP's; in brackets how many, if not all."""
    shown = ResultTable(
        "trees_summary",
        "Tree ensembles, over seeds",
        ["instance", "first point s", "within 1 % s", "proved s", "gap at the end", "behind SCIP"],
        reading="Ours / SCIP's: medians over the seeds that have one; in brackets how many, if not all.",
    )
    sizes = dict.fromkeys((asked.family, asked.trees, asked.depth) for asked in sorted(runs, key=_order))
    for size in sizes:
        pairs = _pairs({one: answer for one, answer in runs.items() if one.instance[:3] == size})
        cells = [
            " / ".join(_median([figure(answer, best) for answer, best in side], tell) for side in pairs)
            for figure, tell in (
                (lambda answer, _: answer.points[0][0] if answer.points else math.nan, "{:.1f}"),
                (_near, "{:.1f}"),
                (lambda answer, _: answer.seconds if answer.proved else math.nan, "{:.1f}"),
                (lambda answer, _: relative_gap(answer.objective, answer.bound), "{:.2%}"),
            )
        ]
        late = sum(bool(behind(ours, theirs)) for (ours, _), (theirs, _) in zip(*pairs, strict=True))
        shown.rows.append(
            [f"{size[0]}, {size[1]} trees of depth {size[2]}", *cells, f"{late} of {len(pairs[0])}"]
        )
    return shown


def _order(asked: Asked) -> tuple[str, int, int, int]:
    return asked.instance


def _pairs(runs: Runs) -> tuple[list[tuple[Answer, float]], list[tuple[Answer, float]]]:
    """Ours and the peer's of all seeds that both have, each with the best that either found."""
    ours, theirs = list[tuple[Answer, float]](), list[tuple[Answer, float]]()
    for instance in sorted({asked.instance for asked in runs}):
        sides = {one.solve_seed is None: answer for one, answer in runs.items() if one.instance == instance}
        if len(sides) == 2:
            best = _best(sides.values())
            ours.append((sides[False], best))
            theirs.append((sides[True], best))
    return ours, theirs


def _near(answer: Answer, best: float) -> float:
    sign = 1.0 if answer.sense == "min" else -1.0
    return seconds_to(answer.points, sign, best + sign * NEAR * abs(best))


def _median(values: list[float], tell: str) -> str:
    known = [value for value in values if math.isfinite(value) and value < NO_BOUND]
    some = f" ({len(known)})" if len(known) < len(values) else ""
    return tell.format(float(np.median(known))) + some if known else NOTHING


def _best(answers: Iterable[Answer]) -> float:
    found = [answer.objective for answer in answers if not math.isnan(answer.objective)]
    maximised = any(answer.sense == "max" for answer in answers)
    return math.nan if not found else max(found) if maximised else min(found)


def _row(asked: Asked, answer: Answer, best: float, late: list[float]) -> list[str]:
    first = answer.points[0][0] if answer.points else math.nan
    notes = [answer.note] if answer.note else []
    notes += [f"behind at {', '.join(f'{moment:g}' for moment in late)} s"] if late else []
    return [
        f"{asked.family} {asked.trees}x{asked.depth}, seed {asked.seed}",
        "SCIP" if asked.solve_seed is None else f"auto, seed {asked.solve_seed}",
        _said(first),
        _said(_near(answer, best)),
        _said(answer.seconds if answer.proved else math.nan),
        *(_said(value_at(answer.points, moment), 7) for moment in MOMENTS),
        _said(answer.bound, 6),
        _said(answer.build) if asked.solve_seed is None else NOTHING,
        _said(answer.cpu),
        "; ".join(notes),
    ]


def _said(value: float, digits: int | None = None) -> str:
    if math.isnan(value) or abs(value) > NO_BOUND:
        return NOTHING
    return (
        f"{value:.1f}"
        if digits is None
        else np.format_float_positional(value, digits, fractional=False, trim="-")
    )
