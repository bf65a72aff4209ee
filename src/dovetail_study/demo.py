"""`dovetail demo`: the water problem from data to a verified answer, explained on the way."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from dovetail.core.check import check
from dovetail.core.words import several
from dovetail.report.log.outlet import width_of
from dovetail.run.result import Result
from dovetail.solving.solve import solve
from dovetail_study.problems.water import BUDGET, FEATURES, Water, water

SEEN = 0.005
"""Smaller treatments are not listed."""


def run(
    *, samples: int, network: str, data: Path | None, time_limit: float, seed: int, report: Path | None
) -> Result:
    """Make, train, solve, check, explain."""
    console = Console(highlight=False, markup=False, width=width_of(sys.stdout))
    console.rule("The problem")
    console.print(
        f"{several(samples, 'water sample is', 'water samples are')} not potable. Each has {len(FEATURES)} "
        "measured features, from which a network predicts whether water is potable. A treatment raises and "
        f"lowers features; all samples together may raise each feature by {BUDGET:g} standard deviations and "
        f"lower it by {BUDGET:g}. Which treatment of which samples makes the network predict most of them "
        "potable?\n"
    )
    source = "look-alike data" if data is None else f"the real data in {data}"
    console.print(f"Training a {network} network on {source} ...")
    instance = water(samples, network, seed=seed, data=data)
    console.print(f"  {instance.training}\n")

    console.rule("The solve")
    result = solve(instance.problem, time_limit=time_limit, seed=seed)

    console.rule("The answer")
    _explain(console, instance, result)
    if report is not None:
        console.print(f"\nReport written to {result.report(report)}")
    return result


def _explain(console: Console, instance: Water, result: Result) -> None:
    if result.x is None:
        console.print(f"No verified solution: {result.message}")
        return
    counts = instance.counts(result)
    table = Table(show_header=False, box=None)
    table.add_row("predicted potable without treatment", f"{counts.untouched} of {counts.samples}")
    table.add_row("predicted potable after treatment", f"{counts.potable} of {counts.samples}")
    table.add_row("newly potable", f"{counts.flipped}")
    console.print(table)
    if counts.untouched:
        console.print(
            f"\nThe network is wrong on {counts.untouched} untreated samples: it predicts them potable."
        )
    moves = result.value(instance.treated) - instance.samples
    touched = np.flatnonzero(np.abs(moves).max(axis=1) > SEEN)
    console.print(f"\n{several(len(touched), 'sample is', 'samples are')} treated. The largest treatments:")
    for i in touched[np.argsort(-np.abs(moves[touched]).sum(axis=1))][:3]:
        parts = [f"{f} {m:+.2f}" for f, m in zip(FEATURES, moves[i], strict=True) if abs(m) > SEEN]
        console.print(Padding(f"sample {i}: {', '.join(parts)}", (0, 0, 0, 2)))
    violation = check(instance.problem, result.x)
    verdict = "satisfies" if violation.within() else "DOES NOT SATISFY"
    console.print(
        f"\nChecked again, with the network itself and no solver: largest violation of a constraint "
        f"{violation.rows.amount:.0e}, of a prediction {violation.prediction.amount:.0e}.\n"
        f"The solution {verdict} every constraint.\n"
        f"Status: {result.status.value}, {result.message.partition('; ')[0]}."
    )
