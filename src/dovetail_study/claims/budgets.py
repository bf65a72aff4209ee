"""Budgets on water, in total or per sample: the paper says both, and its claims are judged with each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dovetail_study.experiment import Rows
from dovetail_study.paper import BUDGETS
from dovetail_study.verdict import Verdict


def read(rows: Rows, budgets: str) -> Rows:
    """The rows with budgets of one kind; a row that names none is of totals."""
    return [row for row in rows if row.get("budgets", "total") == budgets]


def in_both(rows: Rows, judge: Callable[[Rows], list[Verdict]]) -> list[Verdict]:
    """Every claim with each kind of budgets that was run."""
    run = [budgets for budgets in BUDGETS if read(rows, budgets)] or BUDGETS[:1]
    return [
        replace(verdict, reading=f"budgets {budgets}")
        for budgets in run
        for verdict in judge(read(rows, budgets))
    ]
