"""One run over a problem with tree ensembles: `auto`, or SCIP on what PySCIPOpt-ML writes, leaf by leaf.

What is kept of a run is when its point and its bound got better. Ours are seconds of the wall from the call
on, reading the trees included; the peer's are SCIP's own CPU seconds, which begin after the form is built
(`build`): to its advantage. Models are trained before either clock starts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self
from unittest.mock import patch

import numpy as np

import dovetail as dt
from benchmarks.tree_families import FAMILIES

EPSILON = 1e-5
"""What the peer leaves out around a threshold: points there are lost, with 0 they may go either way."""
MEMORY = 4_000.0
"""MB for SCIP: the form of hundreds of trees has millions of rows."""
TICK = 0.1
"""Seconds between two bounds of SCIP's that are written down: there may be thousands."""
Steps = list[tuple[float, float]]
"""Seconds, and the value from then on, in the user's sense."""


@dataclass(frozen=True)
class Asked:
    """One run."""

    family: str
    trees: int
    depth: int
    seed: int
    seconds: float
    solve_seed: int | None
    """None: the peer."""

    @classmethod
    def named(cls, name: str, seed: int, seconds: float, solve_seed: int | None) -> Self:
        """Of `family:treesxdepth`."""
        family, size = name.split(":")
        trees, depth = map(int, size.split("x"))
        return cls(family, trees, depth, seed, seconds, solve_seed)

    @property
    def instance(self) -> tuple[str, int, int, int]:
        """What both sides are asked about."""
        return self.family, self.trees, self.depth, self.seed


@dataclass(frozen=True)
class Answer:
    """What came of it; NaN where nothing did."""

    objective: float
    bound: float
    proved: bool
    cpu: float
    """Seconds of the process, building and reading included."""
    sense: str = "min"
    build: float = 0.0
    """CPU seconds until SCIP began."""
    seconds: float = 0.0
    """At the end, by the clock of the steps."""
    points: Steps = field(default_factory=list)
    bounds: Steps = field(default_factory=list)
    note: str = ""


def answered(asked: Asked) -> Answer:
    """Build, and solve once."""
    import torch

    torch.set_num_threads(1)
    problem, models = FAMILIES[asked.family](asked.trees, asked.depth, asked.seed)
    if asked.solve_seed is None:
        return _peer(problem, models, asked.seconds)
    before = time.process_time()
    result = dt.solve(problem, time_limit=asked.seconds, seed=asked.solve_seed, gap=1e-6, log=False)
    cpu = time.process_time() - before
    objective, bound = (
        np.nan if value is None else float(value) for value in (result.objective, result.bound)
    )
    points, bounds = (
        [(gain.seconds, gain.value) for gain in gains]
        for gains in (result.trace.incumbents, result.trace.bounds)
    )
    return Answer(
        objective, bound, result.status == "optimal", cpu, problem.mip.sense, 0.0, result.seconds,
        points, bounds,
    )  # fmt: skip


def _peer(problem: dt.Problem, models: list[Any], seconds: float) -> Answer:
    """SCIP's word; its last point as `predict` and the check see it."""
    before, sense = time.process_time(), problem.mip.sense
    try:
        scip, x = _written(problem, models)
    except ImportError:
        return Answer(np.nan, np.nan, False, np.nan, note="PySCIPOpt-ML is not installed")
    except Exception as trouble:
        cpu = time.process_time() - before
        return Answer(
            np.nan, np.nan, False, cpu, sense, cpu, note=f"{type(trouble).__name__}: {trouble}"[:80]
        )
    build = time.process_time() - before
    for name, value in (("limits/time", seconds), ("timing/clocktype", 1), ("limits/memory", MEMORY)):
        scip.setParam(name, value)
    points, bounds = _recorded(scip, problem.mip.sign)
    scip.optimize()
    cpu, took = time.process_time() - before, scip.getSolvingTime()
    bound, note = problem.mip.sign * scip.getDualbound(), ""
    bounds.append((took, bound))
    if scip.getStatus() == "memlimit":
        note = "out of memory"
    if not scip.getNSols():
        return Answer(np.nan, bound, False, cpu, sense, build, took, points, bounds, note)
    point = problem.predict(np.array([scip.getVal(column) for column in x]))
    if not dt.check(problem, point).within():
        note = "`predict` or the check says otherwise of its point"
    objective, proved = problem.mip.sign * scip.getObjVal(), scip.getStatus() == "optimal"
    points.append((took, objective))
    return Answer(objective, bound, proved, cpu, sense, build, took, points, bounds, note)


def _recorded(scip: Any, sign: float) -> tuple[Steps, Steps]:
    """Two lists that fill while SCIP runs."""
    from pyscipopt import SCIP_EVENTTYPE, Eventhdlr

    points, bounds = list[tuple[float, float]](), list[tuple[float, float]]()

    class Recorder(Eventhdlr):  # type: ignore[misc]
        kinds = (SCIP_EVENTTYPE.BESTSOLFOUND, SCIP_EVENTTYPE.NODESOLVED)

        def eventinit(self) -> None:
            for kind in self.kinds:
                self.model.catchEvent(kind, self)

        def eventexit(self) -> None:
            for kind in self.kinds:
                self.model.dropEvent(kind, self)

        def eventexec(self, event: Any) -> None:
            now = self.model.getSolvingTime()
            if event.getType() == SCIP_EVENTTYPE.BESTSOLFOUND:
                points.append((now, sign * self.model.getSolObjVal(self.model.getBestSol())))
            bound = sign * self.model.getDualbound()
            if not bounds or (bounds[-1][1] != bound and now > bounds[-1][0] + TICK):
                bounds.append((now, bound))

    scip.includeEventhdlr(Recorder(), "recorder", "when point and bound get better")
    return points, bounds


def _written(problem: dt.Problem, models: list[Any]) -> tuple[Any, Any]:
    """The peer's model, always minimised, and its columns."""
    from pyscipopt import Model
    from pyscipopt_ml.add_predictor import add_predictor_constr

    mip, scip = problem.mip.minimised(), Model()
    scip.hideOutput()
    kinds = np.where(mip.integer, "I", "C")
    ends = ((None if np.isinf(end) else end for end in side) for side in (mip.lower, mip.upper))
    x = np.array(
        [scip.addVar(lb=low, ub=high, vtype=kind) for low, high, kind in zip(*ends, kinds, strict=True)],
        dtype=object,
    )
    for row in range(mip.n_rows):
        entries = mip.A[[row]].tocoo()
        total = sum(float(a) * x[j] for j, a in zip(entries.col, entries.data, strict=True))
        if np.isfinite(mip.row_lower[row]):
            scip.addCons(total >= mip.row_lower[row])
        if np.isfinite(mip.row_upper[row]):
            scip.addCons(total <= mip.row_upper[row])
    scip.setObjective(sum(float(c) * column for c, column in zip(mip.cost, x, strict=True)) + mip.offset)
    with _plain_base_score():
        for block, model in zip(problem.blocks, models, strict=True):
            kind = {"output_type": "classification"} if block.classifies else {}
            add_predictor_constr(scip, model, x[block.inputs], x[block.outputs], epsilon=EPSILON, **kind)
    return scip, x


@contextmanager
def _plain_base_score() -> Iterator[None]:
    """XGBoost's base score as it was before 3.1, a number and no list: the peer cannot read it otherwise."""
    try:
        import xgboost
    except ImportError:
        yield
        return
    save = xgboost.Booster.save_raw

    def saved(self: Any, raw_format: str = "ubj") -> Any:
        raw = save(self, raw_format=raw_format)
        if raw_format != "json":
            return raw
        document = json.loads(raw)
        parameters = document["learner"]["learner_model_param"]
        parameters["base_score"] = parameters["base_score"].strip("[]")
        return bytearray(json.dumps(document), "utf-8")

    with patch.object(xgboost.Booster, "save_raw", saved):
        yield
