"""`auto` against the paper's loop at equal time, on the instances of experiments E1 to E5.

The loop runs first, with its own settings and iterations; `auto` then gets exactly the seconds it took.
big-M is not run here: its rows are read from a results file, where it had 60 seconds.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.parallel import each
from dovetail_study.e1 import E1
from dovetail_study.e2 import E2
from dovetail_study.e3 import E3
from dovetail_study.e4 import E4
from dovetail_study.e5 import E5
from dovetail_study.experiment import BenchSettings, Experiment, ResultTable, Run

SEEDS = (42, 123, 456)
"""The first three of the paper's."""
LARGE = ("32x256", "64x512")
"""Networks of E2 that need a GPU to be trained in reasonable time: left out."""
TREE_SECONDS = 2.0
"""On tree planting the paper's loop uses all of its 300 seconds; `auto` gets this."""
LOOP = "paper"


def run(data: Path | None, results: Path, jobs: int) -> ResultTable:
    table = ResultTable(
        "equal_time",
        f"`auto` and the paper's loop at equal time, means over seeds {', '.join(map(str, SEEDS))}",
        ["experiment", "instance", "seconds", "paper's loop", "auto", "newly flipped, ratio", "big-M, 60 s"],
        reading=(
            "Potable samples (E1 to E4), expected survivors (E5); higher is better. *Seconds*: what the "
            "loop took with its own settings, and what `auto` was given. On tree planting (E5) the loop's "
            f"rows are those of the results file (300 s), and `auto` gets {TREE_SECONDS:g} s. *big-M*: mean "
            "of the rows in docs/results.jsonl with a solution, and their number."
        ),
    )
    settings = BenchSettings(data=data, seeds=SEEDS)
    known = [json.loads(line) for line in results.read_text().splitlines()[1:]]
    tasks = [(e, cell, seed) for e in (E1, E2, E3, E4, E5) for cell in _cells(e, settings) for seed in SEEDS]
    tasks.sort(key=lambda task: -float(dict(task[1]).get("n", 0)))  # long ones first
    arguments = [(e.name, cell, seed, settings) for e, cell, seed in tasks]
    pairs = each(_pair, arguments, jobs)
    found: dict[tuple[str, Any], list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for (name, cell, _, _), pair in zip(arguments, pairs, strict=True):
        found.setdefault((name, cell), []).append(pair)
    for (name, cell), rows in sorted(found.items(), key=lambda item: (item[0][0], str(item[0][1]))):
        table.rows.append(_line(name, dict(cell), rows, known))
    return table


def _cells(experiment: Experiment, settings: BenchSettings) -> list[tuple[tuple[str, Any], ...]]:
    cells = {run.cell: None for run in experiment.runs(settings) if run.method == LOOP}
    return [cell for cell in cells if dict(cell).get("network") not in LARGE]


def _pair(arguments: tuple[str, Any, int, BenchSettings]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The loop, then `auto` for as long."""
    import torch

    torch.set_num_threads(1)
    name, cell, seed, settings = arguments
    experiment = {e.name: e for e in (E1, E2, E3, E4, E5)}[name]
    if name == "e5":
        loop: dict[str, Any] = {"seconds": TREE_SECONDS}
    else:
        loop = experiment.execute(Run(name, cell, LOOP, seed), settings)
    limited = replace(settings, time_limit=loop["seconds"])
    return loop, experiment.execute(Run(name, cell, "auto", seed), limited)


def _line(
    name: str,
    cell: dict[str, Any],
    rows: list[tuple[dict[str, Any], dict[str, Any]]],
    known: list[dict[str, Any]],
) -> list[str]:
    what = "objective" if name == "e5" else "potable"
    same = [r for r in known if r.get("experiment") == name and all(r.get(k) == v for k, v in cell.items())]
    exact = [
        r[what] for r in same if r.get("method") == "big-m" and r.get("found") and r.get(what) is not None
    ]
    loops = [loop for loop, _ in rows]
    if name == "e5":
        loops = [r for r in same if r.get("method") == LOOP and r.get("seed") in SEEDS]
    autos = [auto for _, auto in rows]
    ratio = "-"
    if what == "potable":
        ours, theirs = mean(r["flipped"] for r in autos), mean(r["flipped"] for r in loops)
        ratio = f"{ours / theirs:.2f}" if theirs > 0 else "-" if ours == 0 else "> 0"
    label = ", ".join(f"{value}" if key == "network" else f"{key} {value}" for key, value in cell.items())
    return [
        name,
        label,
        f"{mean(loop['seconds'] for loop, _ in rows):.1f}",
        _mean(loops, what),
        _mean(autos, what),
        ratio,
        f"{mean(exact):.4g} ({len(exact)} of {len([r for r in same if r.get('method') == 'big-m'])})"
        if exact
        else "none",
    ]


def _mean(rows: list[dict[str, Any]], what: str) -> str:
    values = [row[what] for row in rows if row.get(what) is not None and not math.isnan(row[what])]
    return f"{mean(values):.4g}" if values else "none"
