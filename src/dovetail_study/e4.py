"""E4: four kinds of network, one unchanged solver."""

from __future__ import annotations

from dovetail_study.claims import e4 as claims
from dovetail_study.experiment import Experiment
from dovetail_study.instances import on_water
from dovetail_study.paper import E4_KINDS, E4_SIZES
from dovetail_study.run import BenchSettings, Run, runs, tried_first
from dovetail_study.sections import e4 as section

NAME = "e4"
LOOPS = ("paper", "dual-decomposition")
METHODS = (*LOOPS, "big-m", "auto")


def _runs(settings: BenchSettings) -> list[Run]:
    sizes = (5,) if settings.quick else E4_SIZES
    cells = [{"network": network, "n": n} for network in E4_KINDS for n in sizes]
    again = cells[:1] if settings.quick else cells
    both = cells + [{**cell, "budgets": "per sample"} for cell in again]
    solved = runs(NAME, both, (*LOOPS, "auto"), settings)
    # what big-M can write at all is seen on the smallest size; the rest is E1's
    return solved + tried_first(NAME, [cell for cell in cells if cell["n"] == sizes[0]], "big-m", settings)


E4 = Experiment(
    NAME,
    "E4: kinds of network",
    METHODS,
    _runs,
    on_water,
    section.tables,
    claims.verdicts,
    section.draw,
    section.reading,
)
