"""How much rests on rho and the step size: the first limitation the paper names."""

from __future__ import annotations

from dataclasses import replace

import dovetail as dt
from dovetail_study.claims import sensitivity as claims
from dovetail_study.contestants import CONTESTANTS
from dovetail_study.experiment import Experiment
from dovetail_study.instances import on_water
from dovetail_study.paper import RHO, STEP
from dovetail_study.run import BenchSettings, Record, Run, runs
from dovetail_study.sections import sensitivity as section

NAME = "sensitivity"
METHODS = ("paper", "paper-adaptive", "paper-balanced", "dual-decomposition")
RHOS, STEPS = (0.1, 1.0, 10.0, 100.0, 1000.0), (0.001, 0.003, 0.01, 0.03, 0.1)
"""Two powers of ten around the paper's rho, one around its step size."""


def _runs(settings: BenchSettings) -> list[Run]:
    shared = {"network": "2x16", "n": 5 if settings.quick else 50}
    rhos, steps = ((1.0, 100.0), (0.001, 0.1)) if settings.quick else (RHOS, STEPS)
    cells = [{**shared, "rho": rho, "step": STEP} for rho in sorted({*rhos, RHO})]
    cells += [{**shared, "rho": RHO, "step": step} for step in steps if step != STEP]
    return runs(NAME, cells, METHODS, settings)


def _execute(run: Run, settings: BenchSettings) -> Record:
    method: dt.DualDecomposition = CONTESTANTS[run.method]()
    solver = method.nn_solver
    assert isinstance(solver, dt.ProjectedGradient)
    tuned = replace(method, rho=run["rho"], nn_solver=replace(solver, lr=run["step"]))
    return on_water(run, settings, tuned)


SENSITIVITY = Experiment(
    NAME,
    "Sensitivity to rho and step size",
    METHODS,
    _runs,
    _execute,
    section.tables,
    claims.verdicts,
    section.draw,
    section.reading,
)
