"""The methods that are compared, by the names in the tables, and what is kept of a solve."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

import dovetail as dt
from dovetail.experiments.run import Record, Run, Settings

BASELINES = ("big-m", "big-m-sos")
"""They have a time limit of their own, and no use for a GPU."""

MARGIN = 1e-4
"""big-M's classes clear their threshold by this, so that its points survive the check (see `BigM.margin`)."""

CONTESTANTS: dict[str, Callable[[], Any]] = {
    "paper": dt.DualDecomposition.paper,
    "paper-adaptive": lambda: dt.DualDecomposition.paper(adaptive=True),
    "paper-barrier": lambda: replace(dt.DualDecomposition.paper(), nn_solver=dt.LogBarrier()),
    "dual-decomposition": dt.DualDecomposition,
    "auto": lambda: "auto",
    "big-m": lambda: dt.BigM(margin=MARGIN),
    "big-m-sos": lambda: dt.BigM(formulation="sos", margin=MARGIN),
    "ssg": dt.SingleStepGradient,
    "ssg-plain": lambda: dt.SingleStepGradient(rule="gradient"),
    "ssg-one-step": dt.SingleStepGradient.one_step,
}


def contest(
    problem: dt.Problem, run: Run, settings: Settings, method: Any = None
) -> tuple[Record, dt.Result | None]:
    """Solve with the run's method; what came out as a row, and the result itself.

    A baseline that refuses (a layer it cannot write, a model too large) is a row too.
    """
    limit = settings.baseline_limit if run.method in BASELINES else settings.time_limit
    row = begun(run, settings)
    try:
        result = dt.solve(
            problem,
            method if method is not None else CONTESTANTS[run.method](),
            time_limit=limit,
            seed=run.seed,
            device=settings.device if run.method not in BASELINES else None,
            log=False,
        )
    except dt.UnsupportedError as refusal:
        return {**row, "status": "refused", "found": False, "message": str(refusal)}, None
    if result.stop_reason == "interrupt":
        raise KeyboardInterrupt
    return {**row, **_kept(result, problem.mip.sign)}, result


def begun(run: Run, settings: Settings) -> Record:
    """The part of a row that is known beforehand."""
    row: Record = {"key": run.key, "experiment": run.experiment, **dict(run.cell)}
    where = {
        "device": _device(settings, run.method),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }
    return {**row, "method": run.method, "seed": run.seed, **where}


def _device(settings: Settings, method: str) -> str:
    if settings.device is None or method in (*BASELINES, "size"):
        return "cpu"
    return torch.cuda.get_device_name() if settings.device.startswith("cuda") else settings.device


def _kept(result: dt.Result, sign: float) -> Record:
    rows = list(result.trace)
    own = [row for row in rows if row.source or math.isfinite(row.objective)]
    raw = [row.lagrangian for row in rows if row.residuals] if result.method == "big-m" else []
    return {
        "status": result.status.value,
        "stop": result.stop_reason.value,
        "objective": result.objective,
        "found": bool(own),
        "raw": sign * min(raw) if raw else None,
        "bound": result.bound,
        "iterations": result.iterations,
        "best_at": next((row.iteration for row in reversed(rows) if row.source), None),
        "residual": result.residual,
        "seconds": round(result.seconds, 4),
        "mip_seconds": round(sum(row.mip_seconds for row in rows), 4),
        "nn_seconds": round(sum(row.nn_seconds for row in rows), 4),
        "message": result.message,
    }
