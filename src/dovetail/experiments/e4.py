"""E4: four kinds of network, one unchanged solver."""

from __future__ import annotations

import math
from collections.abc import Callable

from dovetail.experiments.experiment import Experiment, Rows
from dovetail.experiments.figures import Bars, Drawing, Lines
from dovetail.experiments.instances import on_water
from dovetail.experiments.run import Run, Settings, runs, tried_first
from dovetail.experiments.statistics import (
    average,
    converged,
    distinct,
    geometric_mean,
    known,
    share,
    text,
    where,
)
from dovetail.experiments.table import Table
from dovetail.experiments.verdict import Verdict, judged, share_held

NAME = "e4"
LOOPS = ("paper", "dual-decomposition")
METHODS = (*LOOPS, "big-m", "auto")
KINDS = {"2x16": "FC", "conv1d": "Conv1d", "residual": "residual", "lstm": "LSTM"}
SIZES = (60, 100, 200)
# What the paper reports, by network: accuracy, share of runs that converge, seconds.
ACCURACY = {"2x16": 0.694, "conv1d": 0.743, "lstm": 0.791, "residual": 0.696}
CONVERGENCE = {"2x16": 0.75, "conv1d": 0.83, "residual": 0.83, "lstm": 0.50}
SECONDS = {"2x16": 6.0, "residual": 8.0, "conv1d": 15.0, "lstm": 50.0}


def _runs(settings: Settings) -> list[Run]:
    sizes = (5,) if settings.quick else SIZES
    cells = [{"network": network, "n": n} for network in KINDS for n in sizes]
    solved = runs(NAME, cells, LOOPS, settings) + runs(NAME, cells, ("auto",), settings, seeds=1)
    # what big-M can write at all is seen on the smallest size; the rest is E1's
    return solved + tried_first(NAME, [cell for cell in cells if cell["n"] == sizes[0]], "big-m", settings)


def _tables(rows: Rows) -> list[Table]:
    table = Table(
        "e4",
        "E4: the unchanged solver on four kinds of network",
        (
            "network",
            "accuracy",
            "majority",
            "method",
            "n",
            "runs",
            "converged",
            "untouched",
            "potable",
            "newly flipped",
            "seconds (geometric mean)",
        ),
        reading=(
            "*Accuracy* on held-out rows, beside that of the majority class. *Converged*: |u - x| < 1e-4 "
            "within 50 iterations, or nothing better exists. big-M appears where it was tried: it cannot "
            "write the other kinds at all."
        ),
    )
    for network, kind in KINDS.items():
        for method in METHODS:
            for n in sorted(distinct(where(rows, network=network, method=method), "n")):
                cell = where(rows, network=network, method=method, n=n)
                refused = all(row["status"] == "refused" for row in cell)
                found = [row for row in cell if row["found"]]
                table.rows.append(
                    [
                        kind,
                        text(average(cell, "accuracy")),
                        text(average(cell, "majority")),
                        method,
                        str(n),
                        str(len(cell)),
                        "cannot be written" if refused else str(sum(map(converged, cell))),
                        text(average(cell, "untouched")),
                        text(average(found, "potable")),
                        text(average(found, "flipped")),
                        text(geometric_mean(known(cell, "seconds"))),
                    ]
                )
    return [table]


def _verdicts(rows: Rows) -> list[Verdict]:
    paper = where(rows, method="paper")
    accuracy = {w: average(where(paper, network=w), "accuracy") for w in ACCURACY}
    rates = {w: share(where(paper, network=w), converged) for w in CONVERGENCE}
    seconds = {w: geometric_mean(known(where(paper, network=w, n=200), "seconds")) for w in SECONDS}
    refused = [row for row in where(rows, method="big-m") if row["network"] in ("conv1d", "lstm")]
    deep = [row for row in where(rows, method="paper", n=200) if row["network"] in ("conv1d", "lstm")]
    slowest = max(known(deep, "seconds"), default=math.nan)
    return [
        _compared(
            "E4 accuracy of FC, Conv1d, LSTM, residual",
            ACCURACY,
            accuracy,
            lambda ours, theirs: abs(ours - theirs) <= 0.03,
            "each within 0.03",
        ),
        _compared(
            "E4 convergence of FC, Conv1d, residual, LSTM",
            CONVERGENCE,
            rates,
            lambda ours, theirs: abs(ours - theirs) <= 0.15,
            "each within 0.15, with the paper's settings",
        ),
        _compared(
            "E4 seconds at n = 200 of FC, residual, Conv1d, LSTM (claimed: at most)",
            SECONDS,
            seconds,
            lambda ours, theirs: ours <= 1.5 * theirs,
            "each at most 1.5 times the paper's",
        ),
        judged(
            "E4 big-M cannot write Conv1d and LSTM",
            "not supported",
            f"the layer is refused by name in {sum(row['status'] == 'refused' for row in refused)} of "
            f"{len(refused)} runs",
            holds=all(row["status"] == "refused" for row in refused) if refused else None,
            rule="refused in every run",
        ),
        judged(
            "Abstract: CNN and LSTM solve in less than 47 s",
            "< 47 s",
            f"at n = 200 at most {text(slowest)} s",
            holds=slowest < 47.0 if deep else None,
            rule="every run at n = 200 below 47 s",
        ),
    ]


def _compared(
    claim: str,
    paper: dict[str, float],
    ours: dict[str, float],
    near: Callable[[float, float], bool],
    rule: str,
) -> Verdict:
    there = {w: value for w, value in ours.items() if math.isfinite(value)}
    return share_held(
        claim,
        ", ".join(text(value) for value in paper.values()),
        ", ".join(text(ours[w]) for w in paper),
        [near(there[w], paper[w]) for w in there],
        rule,
    )


def _draw(rows: Rows) -> Drawing | None:
    if not rows:
        return None
    sizes = sorted(distinct(rows, "n"))
    kinds = {w: kind for w, kind in KINDS.items() if where(rows, network=w)}
    methods = METHODS[:2]
    return Drawing(
        "E4: four kinds of network, one solver",
        [
            Bars(
                "accuracy on held-out rows",
                "accuracy",
                list(kinds.values()),
                {
                    "network": [average(where(rows, network=w), "accuracy") for w in kinds],
                    "majority class": [average(where(rows, network=w), "majority") for w in kinds],
                },
            ),
            Bars(
                "agreement at the end (converged: below 1e-4)",
                "largest |u - x|, mean over runs",
                list(kinds.values()),
                {m: [average(where(rows, network=w, method=m), "residual") for w in kinds] for m in methods},
                log_y=True,
            ),
            Lines(
                "time",
                "samples n",
                "seconds (geometric mean)",
                {
                    f"{kind}, {m}": [
                        (float(n), geometric_mean(known(where(rows, network=w, n=n, method=m), "seconds")))
                        for n in sizes
                    ]
                    for m in methods
                    for w, kind in kinds.items()
                },
                log_y=True,
                ticks={float(n): str(n) for n in sizes},
            ),
        ],
    )


def _reading(rows: Rows) -> str:
    idle = [kind for w, kind in KINDS.items() if rows and _learnt_nothing(where(rows, network=w))]
    flips = {
        kind: average(where(rows, network=w, method="dual-decomposition"), "flipped")
        for w, kind in KINDS.items()
    }
    listed = ", ".join(f"{kind} {text(value)}" for kind, value in flips.items() if math.isfinite(value))
    if not listed:
        return ""
    note = f" {', '.join(idle)}: no better than the majority class, so its rates mean little." if idle else ""
    return f"Newly flipped samples per run with our defaults: {listed}.{note}"


def _learnt_nothing(rows: Rows) -> bool:
    return bool(rows) and average(rows, "accuracy") <= average(rows, "majority") + 0.005


E4 = Experiment(NAME, "E4: kinds of network", METHODS, _runs, on_water, _tables, _verdicts, _draw, _reading)
