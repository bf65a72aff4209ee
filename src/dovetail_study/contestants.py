"""The compared methods, by their names in the tables, and the recorded fields of a solve."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

import dovetail as dt
from dovetail_study.experiment import INIT, THREADS, BenchSettings, Record, Run
from dovetail_study.paper import RHO
from dovetail_study.problems.tree import Tree, tree
from dovetail_study.problems.water import Judge, train

BASELINES = ("big-m", "big-m-sos")
"""They have limits of their own, and no use for a GPU."""
AUTO = "auto"
AUTO_LIMIT = 20.0
"""Largest number of seconds: the method uses all of its time and is the reference for quality, not a
contestant; a fifteenth of the contestants' limit keeps it from taking longer than all their loops
together."""

MARGIN = 1e-4
"""big-M's classes clear their threshold by this, so that its points survive the check (see `BigM.margin`)."""

_paper = dt.DualDecomposition.paper

CONTESTANTS: dict[str, Callable[[], Any]] = {
    "paper": _paper,
    "paper-scip": lambda: _paper(engine="scip"),
    "paper-adaptive": lambda: _paper(adaptive=True),
    "paper-balanced": lambda: replace(_paper(), penalty=dt.BalancedPenalty(relative=False)),
    "paper-no-dual": lambda: replace(_paper(), dual_update=False),
    "paper-outputs": lambda: replace(_paper(), copies="inputs"),
    "paper-barrier": lambda: replace(_paper(), nn_solver=dt.LogBarrier()),
    "dual-decomposition": dt.DualDecomposition,
    AUTO: lambda: "auto",
    "big-m": lambda: dt.BigM(margin=MARGIN),
    "big-m-sos": lambda: dt.BigM(formulation="sos", margin=MARGIN),
    "ssg": dt.SingleStepGradient,
    "ssg-plain": lambda: dt.SingleStepGradient(rule="gradient"),
    "ssg-one-step": dt.SingleStepGradient.one_step,
}

REFERENCE_GAP = 1e-6
"""Methods are compared with proved optima, so these are proved to more digits than `solve` asks for."""


OURS = dt.DualDecomposition()

LEGEND = {
    "paper": (
        f"Algorithm 1 with the paper's split and settings, rho fixed at {RHO:g}; where the paper's text is "
        "open, the one reading that was chosen on other seeds (a class's logit, a fresh Adam from u(k-1), "
        "the best of its steps); MIP steps by whichever engine is fastest"
    ),
    "paper-scip": "the same with SCIP for the MIP steps, which is the paper's solver",
    "paper-adaptive": "the same with rho raised whenever the primal residual ceases to decrease",
    "paper-balanced": "the same with rho balanced between residuals, which may lower it too",
    "paper-no-dual": "the same with the multipliers kept at zero: what the dual update alone is worth",
    "paper-outputs": "the same with our second coupling in place of the paper's copies of other columns",
    "paper-barrier": "the same with the log barrier in place of projected gradient",
    "dual-decomposition": (
        f"Algorithm 1 with our defaults (rho {OURS.rho:g}, patience {OURS.patience}), which were chosen on "
        "water instances of E1's shape: where they are better than the paper's settings on such, that "
        "is weaker evidence"
    ),
    "auto": "what dovetail does when no method is named: no contestant here, but a reference for quality",
    "big-m": "the network written out by PySCIPOpt-ML and solved by SCIP: the paper's baseline",
    "big-m-sos": "the same with special ordered sets",
    "ssg": "the paper's single-step gradient (Algorithm 2), with Adam as its text has it",
    "ssg-plain": "the same with the plain steps of its listing",
    "ssg-one-step": "the variant that the text of E3 describes: one step, then rounding",
    "size": "nothing is solved: what big-M would have to build is counted",
    "exact": "Algorithm 1 with both steps solved to the end",
}


def contest(
    problem: dt.Problem, run: Run, settings: BenchSettings, method: Any = None
) -> tuple[Record, dt.Result | None]:
    """Solve with the run's method; returns the row and the result.

    A baseline that refuses the problem (because of an unsupported layer) also gets a row.
    """
    row = begun(run, settings) | {"limit": seconds(run, settings)}
    try:
        result = dt.solve(
            problem,
            method if method is not None else _contestant(run, settings),
            time_limit=row["limit"],
            gap=REFERENCE_GAP,
            seed=run.seed,
            n_jobs=THREADS,
            device=settings.device if run.method not in BASELINES else None,
            log=False,
        )
    except dt.UnsupportedError as refusal:
        refused = {"status": "refused", "found": False, "message": str(refusal)}
        return row | refused | _of_baseline(run, settings, None), None
    if result.stop_reason == "interrupt":
        raise KeyboardInterrupt
    return row | _recorded(result, problem.mip.sign) | _of_baseline(run, settings, result), result


def seconds(run: Run, settings: BenchSettings) -> float:
    """How long a run may take; for big-M writing and solving together."""
    if run.whole is not None:
        return run.whole
    if run.method in BASELINES:
        return settings.writing_limit + run.times * settings.baseline_limit
    return run.times * (min(AUTO_LIMIT, settings.time_limit) if run.method == AUTO else settings.time_limit)


def _contestant(run: Run, settings: BenchSettings) -> Any:
    method = CONTESTANTS[run.method]()
    if not isinstance(method, dt.BigM):
        return method
    solving = None if run.whole is not None else run.times * settings.baseline_limit
    return replace(method, solve_seconds=solving, memory_limit=settings.memory_limit)


def _of_baseline(run: Run, settings: BenchSettings, result: dt.Result | None) -> Record:
    if run.method not in BASELINES:
        return {}
    return {"engine": "scip", "memory_limit": settings.memory_limit, **baseline_fields(result)}


def begun(run: Run, settings: BenchSettings) -> Record:
    """The part of a row that is known beforehand; the ledger adds its origin."""
    row: Record = {"key": run.key, "experiment": run.experiment, **dict(run.cell)}
    return {**row, "method": run.method, "seed": run.seed, "device": _device(settings, run.method)}


def _device(settings: BenchSettings, method: str) -> str:
    if settings.device is None or method in (*BASELINES, "size"):
        return "cpu"
    return torch.cuda.get_device_name() if settings.device.startswith("cuda") else settings.device


def _recorded(result: dt.Result, sign: float) -> Record:
    rows = list(result.trace)
    own = [row for row in rows if row.source or math.isfinite(row.objective)]
    raw = [row.lagrangian for row in rows if row.residuals] if result.method == "big-m" else []
    best = next((row for row in reversed(rows) if row.source), None)
    return {
        "status": result.status.value,
        "stop": result.stop_reason.value,
        "objective": result.objective,
        "found": bool(own),
        "raw": sign * min(raw) if raw else None,
        "bound": result.bound,
        "bound_kind": result.bound_kind.value,
        "iterations": result.iterations,
        "best_at": None if best is None else best.iteration,
        "best_seconds": None if best is None else round(best.elapsed, 4),
        "residual": result.residual,
        "engine": result.engine or None,
        "seconds": round(result.seconds, 4),
        "mip_seconds": round(sum(row.mip_seconds for row in rows), 4),
        "nn_seconds": round(sum(row.nn_seconds for row in rows), 4),
        "message": result.message,
    }


def baseline_fields(result: dt.Result | None) -> Record:
    """The fields of a row that only big-M has; `result` is None where it refused the problem.

    `end` is "proved", "time" (SCIP searched to its limit), "writing" (never finished writing), "memory",
    "infeasible" (SCIP's word, which is not believed), "refused" or "other"; `scip` is SCIP's own last word.
    """
    written = None if result is None else result.written
    if written is None:  # refused; or over before anything was written, the host being infeasible
        nothing = ("writing_seconds", "solving_seconds", "memory_gb", "variables", "constraints", "scip")
        return {**dict.fromkeys(nothing), "end": "refused" if result is None else "other"}
    return {
        "writing_seconds": round(written.writing_seconds, 4),
        "solving_seconds": _rounded(written.solving_seconds),
        "memory_gb": _rounded(written.memory_gb),
        "variables": written.variables,
        "constraints": written.constraints,
        "scip": written.said,
        "end": written.end.value,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


EPOCHS, QUICK_EPOCHS = 40, 15
"""Training epochs: the problems' own default; quick runs do not need a good network."""


def on_water(run: Run, settings: BenchSettings, method: Any = None) -> Record:
    """A run on a water problem: its cell names network, n and, if they matter, init and budgets."""
    cell = dict(run.cell)
    network, init = cell["network"], cell.get("init", INIT)
    if init == "residual":
        network, init = _residual(network), INIT
    judge, seconds = _judge(network, init, run.seed, settings.data, settings.quick, settings.device)
    instance = judge.water(cell["n"], shared=cell.get("budgets", "total") == "total")
    row, result = contest(instance.problem, run, settings, method)
    training = judge.training
    row |= {
        "accuracy": training.accuracy,
        "majority": training.majority,
        "spread": training.spread,
        "parameters": training.parameters,
        "training_seconds": round(seconds, 2),
    }
    if result is not None:
        counts = instance.counts(result)
        row |= {"untouched": counts.untouched, "potable": counts.potable, "flipped": counts.flipped}
    return row


def _residual(network: str) -> str:
    """A residual network of the same depth and width: a branch has two layers."""
    layers, width = network.split("x")
    return f"residual-{int(layers) // 2}x{width}"


@lru_cache(maxsize=6)
def _judge(
    network: str, init: str, seed: int, data: Path | None, quick: bool, device: str | None
) -> tuple[Judge, float]:
    start = time.perf_counter()
    judge = train(
        network,
        seed=seed,
        data=data,
        init=init,
        epochs=QUICK_EPOCHS if quick else EPOCHS,
        allow_constant=True,
        device=device or "cpu",
    )
    return judge, time.perf_counter() - start


def on_trees(run: Run, settings: BenchSettings, method: Any = None) -> Record:
    """A run on a tree-planting problem: its cell names network and grid."""
    instance = _forest(run["grid"], run["network"], run.seed, settings.data, settings.quick)
    row, _ = contest(instance.problem, run, settings, method)
    trainings = instance.trainings
    return row | {
        "accuracy": sum(training.accuracy for training in trainings) / len(trainings),
        "spread": min(training.spread for training in trainings),
        "parameters": sum(training.parameters for training in trainings),
    }


@lru_cache(maxsize=2)
def _forest(grid: int, network: str, seed: int, data: Path | None, quick: bool) -> Tree:
    epochs = QUICK_EPOCHS if quick else EPOCHS
    return tree(grid, network, seed=seed, data=data, epochs=epochs, allow_constant=True)


def written_out(network: str, n: int) -> Record:
    """What big-M would have to build for an untrained network of this size: no solve, no training."""
    judge = train(network, epochs=0, allow_constant=True)
    problem = judge.water(n).problem
    size = dt.BigM().size(problem)
    return {
        "variables": size.variables,
        "constraints": size.constraints,
        "coefficients": size.terms,
        "columns": problem.mip.n_columns,
    }
