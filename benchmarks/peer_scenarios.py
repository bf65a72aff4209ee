"""PySCIPOpt-ML's own test programs with trees: SCIP on the form it writes, and `auto`, on the same models.

    python -m benchmarks.peer_scenarios path/to/PySCIPOpt-ML/tests --seconds 30

The tests are run as they stand (their repository has them, and their data), each twice in a process of its
own: with the peer's `add_predictor_constr` and `optimize`, and with ours in their place. Prints a line for
each, with what its own assertions say; ends with 1 where our point is worse, or none, and SCIP's is one.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import random
import re
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.parallel import ended
from benchmarks.tree_runs import _plain_base_score

TREES = re.compile(r"gbdt|_rf|_dt_|decision_tree")
"""In the name of a test."""
SAME = 1e-4
"""Relative: more than the peer's `epsilon` moves, and the gap of an optimum."""
BUSY = 4.0
"""Times the limit, since SCIP counts CPU seconds, and a machine may have other work."""
GRACE = 120.0
"""Seconds beyond the limit, for data, training and writing."""


@dataclass(frozen=True)
class Scenario:
    """One test, one side."""

    file: str
    test: str
    ours: bool
    seconds: float


@dataclass(frozen=True)
class Met:
    """What its solve came to, in the model's own sense; NaN where nothing did."""

    status: str = "not solved"
    objective: float = math.nan
    bound: float = math.nan
    cpu: float = math.nan
    sense: str = "minimize"
    assertion: str = ""
    """What the test itself says, if it fails."""


def met(asked: Scenario) -> Met:
    """Load the file, put a recording model in its place, run the test."""
    import pyscipopt
    import torch

    torch.set_num_threads(1)
    found: list[Met] = []

    class Recording(pyscipopt.Model):  # type: ignore[misc]
        def optimize(self) -> None:
            found.append(_solved(self, super().optimize, asked))

    sys.path.insert(0, str(Path(asked.file).parent))
    os.chdir(Path(asked.file).parent.parent)
    spec = importlib.util.spec_from_file_location(Path(asked.file).stem, asked.file)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.Model = Recording
    if asked.ours:
        from dovetail.compat.pyscipopt_ml.add_predictor import add_predictor_constr

        module.add_predictor_constr = add_predictor_constr
    said = ""
    random.seed(0)  # some of the tests draw without a seed: both sides the same
    np.random.seed(0)  # noqa: NPY002 - theirs
    try:
        with _plain_base_score():
            getattr(module, asked.test)()
    except Exception as trouble:
        said = f"{type(trouble).__name__}: {trouble}".splitlines()[0][:80]
    return replace(found[-1] if found else Met(), assertion=said)


def _solved(model: Any, optimize: Any, asked: Scenario) -> Met:
    before, sense = time.process_time(), model.getObjectiveSense()
    if asked.ours:
        import dovetail as dt

        result = dt.solve(model, time_limit=asked.seconds, log=False)
        values = [math.nan if one is None else float(one) for one in (result.objective, result.bound)]
        return Met(result.status.value, *values, time.process_time() - before, sense)
    model.hideOutput()
    for name, value in (("limits/time", asked.seconds), ("timing/clocktype", 1)):
        model.setParam(name, value)
    optimize()
    objective = model.getObjVal() if model.getNSols() else math.nan
    return Met(model.getStatus(), objective, model.getDualbound(), time.process_time() - before, sense)


def behind(ours: Met, theirs: Met) -> bool:
    """Whether SCIP's point is better, or the only one."""
    if math.isnan(theirs.objective) or theirs.status == "infeasible":
        return False
    sign = 1.0 if theirs.sense == "minimize" else -1.0
    room = SAME * max(1.0, abs(theirs.objective))
    return not sign * ours.objective <= sign * theirs.objective + room


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peer_scenarios", description=__doc__)
    parser.add_argument("tests", type=Path, help="the folder `tests` of PySCIPOpt-ML, with its data")
    parser.add_argument("--only", default="", help="a part of the names of tests")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ.setdefault("KERAS_BACKEND", "torch")  # which one of the files imports
    names = [
        (str(file.resolve()), name)
        for file in sorted(options.tests.glob("test_*.py"))
        for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
        if TREES.search(name) and options.only in name
    ]
    asked = [Scenario(*name, ours, options.seconds) for name in names for ours in (True, False)]
    runs: dict[tuple[str, bool], Met] = {}
    patience = BUSY * options.seconds + GRACE
    worse = 0
    for one, answer in ended(met, asked, options.jobs, patience, math.inf):
        runs[one.test, one.ours] = answer or Met("ended, no answer")
        if (one.test, not one.ours) in runs:
            ours, theirs = runs[one.test, True], runs[one.test, False]
            late = behind(ours, theirs)
            worse += late
            print(
                f"| {one.test} | {_said(ours)} | {_said(theirs)} | {'behind' if late else ''} |", flush=True
            )
    print(f"{len(names)} programs; ours is worse on {worse}")
    return 1 if worse else 0


def _said(found: Met) -> str:
    words = f"{found.status} {found.objective:.6g}, bound {found.bound:.6g}, {found.cpu:.1f} s"
    return f"{words}; {found.assertion}" if found.assertion else words


if __name__ == "__main__":
    sys.exit(main())
