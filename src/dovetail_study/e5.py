"""E5: tree planting with the network step's sub-solver swapped, beside SCIP."""

from __future__ import annotations

from dovetail_study.claims import e5 as claims
from dovetail_study.experiment import Experiment
from dovetail_study.instances import on_trees
from dovetail_study.paper import E5_NETWORKS
from dovetail_study.run import FEW, BenchSettings, Run, runs, tried_first
from dovetail_study.sections import e5 as section

NAME = "e5"
LOOPS = ("paper", "paper-no-dual", "paper-barrier", "dual-decomposition")
SLOW = ("paper-scip", "paper-outputs")
"""Minutes a run: a MIP step by SCIP, or one that keeps the outputs, takes seconds."""
METHODS = (*LOOPS, *SLOW, "auto", "big-m")
BASELINE_TIMES = 3.0
"""SCIP's 900 s, in limits of 300 s: the paper lets it have 860."""


def _runs(settings: BenchSettings) -> list[Run]:
    grid, networks = (2, ("2x8", "3x8")) if settings.quick else (6, E5_NETWORKS)
    cells = [{"network": w, "grid": grid} for w in networks]
    planned = runs(NAME, cells, (*LOOPS, "auto"), settings) + runs(NAME, cells, SLOW, settings, seeds=FEW)
    return planned + tried_first(NAME, cells, "big-m", settings, times=BASELINE_TIMES)


E5 = Experiment(
    NAME,
    "E5: sub-solvers on tree planting",
    METHODS,
    _runs,
    on_trees,
    section.tables,
    claims.verdicts,
    section.draw,
    section.reading,
)
