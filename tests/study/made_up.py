"""Rows that nobody measured: what a verdict or a table makes of them can be worked out by hand."""

import random

from dovetail_study.bench import experiment_named
from dovetail_study.experiment import BenchSettings, Word

HOLDS, IN_PART, NOT, UNTESTABLE = Word.HOLDS, Word.IN_PART, Word.NOT, Word.UNTESTABLE
ENDS = ("proved", "time", "writing", "memory", "infeasible", "refused")
AGREED = {"stop": "agreed", "iterations": 12}


def row(experiment, method, seed=42, **fields):
    """A line of format 2: a loop that ran its 50 iterations, unless the fields say otherwise."""
    cell = {
        k: v for k, v in fields.items() if k in ("network", "n", "budgets", "init", "grid", "rho", "step")
    }
    named = " ".join(f"{name}={value}" for name, value in cell.items())
    whole = {
        "key": f"{experiment} {named} {method} seed={seed}", "experiment": experiment, "method": method,
        "seed": seed, "device": "cpu", "commit": "abc1234", "machine": "x86_64, 16 cores", "threads": 1,
        "shared": 4, "dovetail": "0.2.0", "status": "feasible", "stop": "iterations", "found": True,
        "objective": 10.0, "raw": None, "bound": None, "bound_kind": "none", "iterations": 50, "best_at": 20,
        "best_seconds": 0.8, "residual": 0.01, "engine": "piqp", "seconds": 2.0, "mip_seconds": 1.0,
        "nn_seconds": 1.0, "untouched": 1, "potable": 10, "flipped": 9, "accuracy": 0.7, "majority": 0.6,
        "spread": 1.0, "parameters": 100, "message": "",
    }  # fmt: skip
    return {**whole, **fields}


def scip(experiment, end, seed=42, **fields):
    """A line of big-M that ended so."""
    ends = {
        "proved": {"status": "optimal", "stop": "proved", "seconds": 60.0, "solving_seconds": 59.0},
        "time": {"stop": "time", "seconds": 310.0, "solving_seconds": 300.0},
        "writing": {"stop": "time", "seconds": 300.0, "solving_seconds": None, "found": False},
        "memory": {"stop": "error", "seconds": 90.0, "solving_seconds": 20.0, "found": False},
        "infeasible": {"stop": "stalled", "seconds": 30.0, "solving_seconds": 29.0, "found": False},
        "refused": {"status": "refused", "found": False, "seconds": None},
    }[end]
    shared = {
        "engine": "scip",
        "writing_seconds": 1.0,
        "memory_gb": 3.5,
        "variables": 900,
        "constraints": 800,
    }
    return row(experiment, "big-m", seed, **{**shared, **ends, "end": end, **fields})


def judged(experiment, rows, claim):
    """The verdict whose claim begins so."""
    (found,) = [verdict for verdict in experiment.verdicts(rows) if verdict.named.startswith(claim)]
    return found


def all_words(cases):
    """Which words each claim was seen with."""
    seen = {}
    for claim, word, _ in cases:
        seen.setdefault(claim, set()).add(word)
    return seen


def whole(name):
    """A full bench of an experiment that nobody ran."""
    made, dice = [], random.Random(0)
    for run in experiment_named(name).runs(BenchSettings()):
        cell = dict(run.cell)
        if run.method == "size":
            counted = {"variables": 5, "constraints": 6, "coefficients": 7, "columns": 8}
            made.append(row(name, "size", run.seed, found=False, **cell, **counted))
        elif run.method == "big-m":
            made.append(scip(name, dice.choice(ENDS), run.seed, **cell))
        else:
            potable = dice.randrange(1, 20)
            made.append(row(name, run.method, run.seed, **cell, potable=potable, objective=float(potable)))
    return made
