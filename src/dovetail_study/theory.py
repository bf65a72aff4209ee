"""Theorems 1 and 2, on problems that satisfy their assumptions and on some that nearly do."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import dovetail as dt
from dovetail_study import theorem1
from dovetail_study.contestants import on_water
from dovetail_study.experiment import (
    BenchSettings,
    Experiment,
    Record,
    ResultTable,
    Rows,
    Run,
    Verdict,
    judged,
    runs,
)
from dovetail_study.families import FAMILIES
from dovetail_study.figures import Drawing, LinesPanel
from dovetail_study.statistics import exponent, text, where

NETWORKS, QUICK_NETWORKS = ("4x64", "8x128", "16x128", "16x256", "16x512"), ("2x16", "4x32")
"""Parameters from ten thousand to four million."""
ITERATIONS, SAMPLES, QUICK_SAMPLES = 4, 50, 5
"""A few iterations: the cost of an iteration does not change."""


def execute(run: Run, settings: BenchSettings) -> Record:
    """A few iterations of the paper's settings."""
    return on_water(run, settings, replace(dt.DualDecomposition.paper(), iterations=ITERATIONS))


def _seconds_per_step(row: Record, step: str) -> float:
    """Seconds of one step, per iteration; NaN where the time was over before the first."""
    return float(row[f"{step}_seconds"] / row["iterations"]) if row["iterations"] else math.nan


def tables(rows: Rows) -> list[ResultTable]:
    """One row per network."""
    table = ResultTable(
        "theory-cost",
        "Theorem 2: seconds per iteration against parameters",
        ("network", "parameters", "MIP step, ms", "network step, ms"),
        records=rows,
    )
    for row in rows:
        steps = [text(1e3 * _seconds_per_step(row, step)) for step in ("mip", "nn")]
        table.rows.append([row["network"], f"{row['parameters']:,}", *steps])
    return [table] if table.rows else []


def verdicts(rows: Rows) -> list[Verdict]:
    """The expected power, one: linear in the parameters; the MIP step does not depend on them."""
    here = [row for row in where(rows, device="cpu") if row["iterations"]]
    power = exponent([(float(row["parameters"]), _seconds_per_step(row, "nn")) for row in here])
    mip = [_seconds_per_step(row, "mip") for row in here]
    return [
        judged(
            "Theorem 2: cost per iteration is linear in the parameters, the MIP step's is constant",
            "O(T_MIP + P)",
            f"network step grows like parameters to the power {text(power)}; MIP step "
            f"{text(1e3 * min(mip, default=math.nan))} to {text(1e3 * max(mip, default=math.nan))} ms",
            holds=power <= 1.1 and max(mip) <= 2.0 * min(mip) if len(here) >= 3 else None,
            in_part=power <= 1.1,
            rule="exponent at most 1.1, and the longest MIP step at most twice the shortest",
            rows=here,
        )
    ]


def panels(rows: Rows) -> list[LinesPanel]:
    """Both steps against parameters."""
    if not rows:
        return []
    points = {
        name: [(float(row["parameters"]), _seconds_per_step(row, step)) for row in rows]
        for name, step in (("network step", "nn"), ("MIP step", "mip"))
    }
    return [LinesPanel("cost of an iteration", "parameters", "seconds", points, log_x=True, log_y=True)]


NAME, COST = "theory", "cost"
METHODS = ("exact", "paper")


def _runs(settings: BenchSettings) -> list[Run]:
    instances = theorem1.QUICK_INSTANCES if settings.quick else theorem1.INSTANCES
    families: list[dict[str, Any]] = [
        {"family": family.name, "instance": i} for family in FAMILIES for i in range(instances)
    ]
    n = QUICK_SAMPLES if settings.quick else SAMPLES
    networks = QUICK_NETWORKS if settings.quick else NETWORKS
    costs = [{"family": COST, "network": network, "n": n} for network in networks]
    # the cost of an iteration does not depend on the seed
    return runs(NAME, families, METHODS[:1], settings) + runs(NAME, costs, METHODS[1:], settings, seeds=1)


def _execute(run: Run, settings: BenchSettings) -> Record:
    return (execute if run["family"] == COST else theorem1.execute)(run, settings)


def _halves(rows: Rows) -> tuple[Rows, Rows]:
    """The rows about each theorem."""
    return [row for row in rows if row["family"] != COST], [row for row in rows if row["family"] == COST]


def _tables(rows: Rows) -> list[ResultTable]:
    first, second = _halves(rows)
    return theorem1.tables(first) + tables(second)


def _verdicts(rows: Rows) -> list[Verdict]:
    first, second = _halves(rows)
    return theorem1.verdicts(first) + verdicts(second)


def _draw(rows: Rows) -> Drawing | None:
    first, second = _halves(rows)
    drawn = theorem1.panels(first) + panels(second)
    return Drawing("Theorems 1 and 2, measured", drawn) if drawn else None


THEORY = Experiment(NAME, "Theorems 1 and 2", METHODS, _runs, _execute, _tables, _verdicts, _draw)
