"""Theorems 1 and 2, on problems that satisfy their assumptions: does the loop do what the proofs say?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dovetail.experiments import theorem1, theorem2
from dovetail.experiments.convex import FAMILIES
from dovetail.experiments.experiment import Experiment, Rows
from dovetail.experiments.figures import Drawing
from dovetail.experiments.run import Record, Run, Settings, runs
from dovetail.experiments.table import Table
from dovetail.experiments.verdict import Verdict

NAME, COST = "theory", "cost"
METHODS = ("exact", "paper")


def _runs(settings: Settings) -> list[Run]:
    families: list[dict[str, Any]] = [{"family": family} for family in FAMILIES]
    n = theorem2.QUICK_SAMPLES if settings.quick else theorem2.SAMPLES
    networks = theorem2.QUICK_NETWORKS if settings.quick else theorem2.NETWORKS
    costs = [{"family": COST, "network": network, "n": n} for network in networks]
    # the cost of an iteration does not depend on the seed
    return runs(NAME, families, METHODS[:1], settings) + runs(NAME, costs, METHODS[1:], settings, seeds=1)


def _execute(run: Run, settings: Settings) -> Record:
    execute = theorem2.execute if run["family"] == COST else theorem1.execute
    return execute(run, settings)


def _halves(rows: Rows) -> tuple[Rows, Rows]:
    """The rows about each theorem."""
    return [row for row in rows if row["family"] != COST], [row for row in rows if row["family"] == COST]


def _tables(rows: Rows) -> list[Table]:
    first, second = _halves(rows)
    made = [replace(table, records=table.records or first) for table in theorem1.tables(first)]
    return made + [replace(table, records=table.records or second) for table in theorem2.tables(second)]


def _verdicts(rows: Rows) -> list[Verdict]:
    first, second = _halves(rows)
    made = [replace(verdict, rows=verdict.rows or first) for verdict in theorem1.verdicts(first)]
    return made + [replace(verdict, rows=verdict.rows or second) for verdict in theorem2.verdicts(second)]


def _draw(rows: Rows) -> Drawing | None:
    first, second = _halves(rows)
    panels = theorem1.panels(first) + theorem2.panels(second)
    return Drawing("Theorems 1 and 2, measured", panels) if panels else None


THEORY = Experiment(NAME, "Theorems 1 and 2", METHODS, _runs, _execute, _tables, _verdicts, _draw)
