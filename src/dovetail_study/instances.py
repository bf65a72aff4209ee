"""Instances of the two benchmark problems; networks are trained once and kept for the runs that follow."""

from __future__ import annotations

import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import dovetail as dt
from dovetail_study.contestants import contest
from dovetail_study.problems.tree import Tree, tree
from dovetail_study.problems.water import Judge, train
from dovetail_study.run import INIT, BenchSettings, Record, Run

EPOCHS, QUICK_EPOCHS = 40, 15
"""Of training: as many as the problems take by themselves; quick runs need no good network."""


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
