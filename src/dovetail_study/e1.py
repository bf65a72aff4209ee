"""E1: dual decomposition against the networks written out, on water, over network and problem sizes."""

from __future__ import annotations

from typing import Any

from dovetail_study.claims import e1 as claims
from dovetail_study.experiment import Experiment
from dovetail_study.instances import on_water
from dovetail_study.paper import BUDGETS, E1_NETWORKS, E1_SIZES, HEADLINE
from dovetail_study.run import FEW, BenchSettings, Run, runs, tried_first
from dovetail_study.sections import e1 as section

NAME = "e1"
LOOPS = ("paper", "dual-decomposition")
METHODS = ("paper", "paper-scip", "dual-decomposition", "auto", "big-m", "big-m-sos")
"""`big-m-sos`, the baseline's other form, is run where `--methods` names it."""
HEADLINE_TIMES = 3.0
"""Its 900 s, in limits of 300 s."""
MOST_FOR_SCIP = 100
"""Samples with which 50 of its MIP steps fit 300 s on every network, three seeds each; of 200 samples, on the
smallest network, the 50th did not."""


def _runs(settings: BenchSettings) -> list[Run]:
    sizes = dict(zip(BUDGETS, ((5, 10), (5,)) if settings.quick else (E1_SIZES, E1_SIZES), strict=True))
    networks = E1_NETWORKS[:2] if settings.quick else E1_NETWORKS
    cells: list[dict[str, Any]] = [
        {"network": network, "n": n, "budgets": budgets}
        for budgets in BUDGETS
        for network in networks
        for n in sizes[budgets]
    ]
    headline = [] if settings.quick else [HEADLINE]
    by_scip = [cell for cell in cells if cell["n"] <= MOST_FOR_SCIP]
    planned = runs(NAME, cells + headline, (*LOOPS, "auto"), settings)
    planned += runs(NAME, by_scip, ("paper-scip",), settings, seeds=FEW)
    for baseline in ("big-m", "big-m-sos") if settings.methods is not None else ("big-m",):
        planned += tried_first(NAME, cells, baseline, settings)
        planned += tried_first(NAME, headline, baseline, settings, times=HEADLINE_TIMES)
    return planned


E1 = Experiment(
    NAME,
    "E1: dual decomposition against big-M",
    METHODS,
    _runs,
    on_water,
    section.tables,
    claims.verdicts,
    section.draw,
    section.reading,
)
