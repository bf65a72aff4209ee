"""E2: ever deeper networks at n = 100, with torch's own initialisation and with ones that can be trained."""

from __future__ import annotations

from dataclasses import replace

from dovetail_study.claims import e2 as claims
from dovetail_study.contestants import begun
from dovetail_study.experiment import Experiment
from dovetail_study.instances import on_water, written_out
from dovetail_study.paper import E2_NETWORKS, E2_SAMPLES, INTRODUCTION, INTRODUCTION_SECONDS
from dovetail_study.run import BenchSettings, Record, Run, runs, tried_first
from dovetail_study.sections import e2 as section

NAME = "e2"
LOOPS = ("paper", "dual-decomposition")
METHODS = (*LOOPS, "big-m", "auto", "size")
CLAIMED_SIZE = {**INTRODUCTION, "init": "default"}
"""The instance whose written-out size the paper names, and which SCIP did not solve in two hours."""


def _runs(settings: BenchSettings) -> list[Run]:
    networks, n = (E2_NETWORKS[:2], 10) if settings.quick else (E2_NETWORKS, E2_SAMPLES)
    cells = [{"network": w, "n": n, "init": init} for w in networks for init in ("default", "he")]
    # even with He's initialisation a plain network of 64x512 comes out constant: a residual one joins it
    cells.append({"network": networks[-1], "n": n, "init": "residual"})
    again = cells[:1] if settings.quick else cells
    solved = cells + [{**cell, "budgets": "per sample"} for cell in again]
    planned = runs(NAME, solved, (*LOOPS, "auto"), settings)
    planned += tried_first(NAME, cells, "big-m", settings)
    if not settings.quick:
        claimed = runs(NAME, [CLAIMED_SIZE], ("big-m",), settings, seeds=1)
        planned += [replace(run, whole=INTRODUCTION_SECONDS) for run in claimed]
    counted = [{**CLAIMED_SIZE, "network": networks[-1], "n": n} for n in (500, 60)]
    return planned + runs(NAME, counted, ("size",), settings, seeds=1)


def _execute(run: Run, settings: BenchSettings) -> Record:
    if run.method == "size":  # nothing is solved: what would have to be built is counted
        return {**begun(run, settings), "found": False, **written_out(run["network"], run["n"])}
    return on_water(run, settings)


E2 = Experiment(
    NAME,
    "E2: networks of growing depth",
    METHODS,
    _runs,
    _execute,
    section.tables,
    claims.verdicts,
    section.draw,
    section.reading,
)
