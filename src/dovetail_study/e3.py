"""E3: what the dual update is worth: single-step gradient, dual decomposition and SCIP side by side."""

from __future__ import annotations

from dovetail_study.claims import e3 as claims
from dovetail_study.experiment import Experiment
from dovetail_study.instances import on_water
from dovetail_study.paper import BUDGETS, E3_SIZES, E3_TEXT_SIZES
from dovetail_study.run import BenchSettings, Run, runs, tried_first
from dovetail_study.sections import e3 as section

NAME = "e3"
LOOPS = ("ssg", "ssg-plain", "ssg-one-step", "paper", "paper-no-dual", "dual-decomposition")
METHODS = (*LOOPS, "auto", "big-m")
NETWORK = "2x16"
"""Its smallest: SCIP has to get somewhere within its limit."""
SIZES = (*E3_SIZES, *E3_TEXT_SIZES)


def _runs(settings: BenchSettings) -> list[Run]:
    sizes = dict(zip(BUDGETS, ((4, 8), (4,)) if settings.quick else (SIZES, SIZES), strict=True))
    cells = [{"network": NETWORK, "n": n, "budgets": b} for b in BUDGETS for n in sizes[b]]
    planned = runs(NAME, cells, (*LOOPS, "auto"), settings)
    return planned + tried_first(NAME, cells, "big-m", settings)


E3 = Experiment(
    NAME,
    "E3: without dual updates",
    METHODS,
    _runs,
    on_water,
    section.tables,
    claims.verdicts,
    section.draw,
    section.reading,
)
