"""Theorems 1 and 2, on problems that satisfy their assumptions and on some that do not quite."""

from __future__ import annotations

from typing import Any

from dovetail_study import theorem1, theorem1_page, theorem2
from dovetail_study.experiment import Experiment, Rows
from dovetail_study.families import FAMILIES
from dovetail_study.figures import Drawing
from dovetail_study.run import BenchSettings, Record, Run, runs
from dovetail_study.table import ResultTable
from dovetail_study.verdict import Verdict

NAME, COST = "theory", "cost"
METHODS = ("exact", "paper")


def _runs(settings: BenchSettings) -> list[Run]:
    instances = theorem1.QUICK_INSTANCES if settings.quick else theorem1.INSTANCES
    families: list[dict[str, Any]] = [
        {"family": family.name, "instance": i} for family in FAMILIES for i in range(instances)
    ]
    n = theorem2.QUICK_SAMPLES if settings.quick else theorem2.SAMPLES
    networks = theorem2.QUICK_NETWORKS if settings.quick else theorem2.NETWORKS
    costs = [{"family": COST, "network": network, "n": n} for network in networks]
    # the cost of an iteration does not depend on the seed
    return runs(NAME, families, METHODS[:1], settings) + runs(NAME, costs, METHODS[1:], settings, seeds=1)


def _execute(run: Run, settings: BenchSettings) -> Record:
    execute = theorem2.execute if run["family"] == COST else theorem1.execute
    return execute(run, settings)


def _halves(rows: Rows) -> tuple[Rows, Rows]:
    """The rows about each theorem."""
    return [row for row in rows if row["family"] != COST], [row for row in rows if row["family"] == COST]


def _tables(rows: Rows) -> list[ResultTable]:
    first, second = _halves(rows)
    return theorem1_page.tables(first) + theorem2.tables(second)


def _verdicts(rows: Rows) -> list[Verdict]:
    first, second = _halves(rows)
    return theorem1_page.verdicts(first) + theorem2.verdicts(second)


def _draw(rows: Rows) -> Drawing | None:
    first, second = _halves(rows)
    panels = theorem1_page.panels(first) + theorem2.panels(second)
    return Drawing("Theorems 1 and 2, measured", panels) if panels else None


THEORY = Experiment(NAME, "Theorems 1 and 2", METHODS, _runs, _execute, _tables, _verdicts, _draw)
