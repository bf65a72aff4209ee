"""Tree ensembles: `auto` beside SCIP on the form that PySCIPOpt-ML writes, leaf by leaf.

    python -m benchmarks.trees diet:30x5 water:10x5 --seeds 0 1 2 --seconds 60

*Diet*: the cheapest 25 foods with a forest's taste above a limit. *Water*: 50 samples, a budget for each
feature, boosted trees; as many drinkable ones as possible. *Plant*: XGBoost over 20 inputs, five of them
integer, under four rows; the most. *Wine* and *planting*: the hosts of the generators, forests in the place
of the networks. After the colon: trees x depth. One process and one thread for each run; CPU seconds, the
models are trained before the clock starts. A point of the peer's is held against `predict`
and the check.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.console import Console

import dovetail as dt
from benchmarks.parallel import each
from dovetail.experiments.table import Table

EPSILON = 1e-5
"""How far above a threshold the peer's right side begins."""
MEMORY = 4_000.0
"""MB for SCIP: the form of hundreds of trees has millions of rows."""
Built = tuple[dt.Problem, list[Any]]
"""A problem, and the estimator of each of its blocks."""


def diet(trees: int, depth: int, seed: int) -> Built:
    """Nutrients from below, foods at a price, a taste of at least the better two fifths."""
    from sklearn.ensemble import RandomForestRegressor

    rng, foods, nutrients = np.random.default_rng(seed), 25, 11
    cost = rng.uniform(50.0, 1000.0, foods)
    holds = rng.uniform(0.0, 1.0, (foods, nutrients)) * (rng.random((foods, nutrients)) < 0.5) * 10.0
    needed = holds.T @ rng.uniform(0.5, 1.5, foods)
    X = rng.uniform(0.0, 3.0, (2000, foods))
    weight = rng.uniform(0.0, 1.0, foods)
    taste = 1.0 - np.abs(np.tanh((X * weight).sum(axis=1) / (1.5 * weight.sum()) - 1.0))
    taste += 0.1 * np.sin(X[:, 0] * X[:, 1]) + 0.2 * (X[:, 2] > 1.0)
    taste = (taste - taste.min()) / (taste.max() - taste.min())
    model = RandomForestRegressor(trees, max_depth=depth, random_state=seed).fit(X, taste)
    mip = dt.Mip(
        np.append(cost, 0.0),
        np.column_stack([holds.T, np.zeros(nutrients)]),
        needed,
        np.inf,
        np.append(np.zeros(foods), np.quantile(taste, 0.6)),
        np.append(np.full(foods, 3.0), 1.0),
    )
    problem = dt.Problem(mip)
    problem.add_predictor(model, np.arange(foods), [foods])
    return problem, [model]


def water(trees: int, depth: int, seed: int, samples: int = 50, budget: float = 3.0) -> Built:
    """Undrinkable samples, each feature of which may be raised or lowered, within budgets over all."""
    from sklearn.ensemble import GradientBoostingClassifier

    from dovetail.problems.water import look_alike

    X, drinkable = look_alike(seed)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = GradientBoostingClassifier(n_estimators=trees, max_depth=depth, random_state=seed)
    model.fit(X, drinkable.astype(int))
    given = X[model.predict(X) == 0][:samples]
    n, d = given.shape
    size, eye, each_feature = n * d, sp.eye_array(n * d), sp.kron(np.ones((1, n)), sp.eye_array(d))
    A = sp.block_array(
        [
            [sp.csr_array((size, n)), eye, -eye, eye],
            [None, None, each_feature, None],
            [None, None, None, each_feature],
        ]
    )
    mip = dt.Mip(
        np.repeat([1.0, 0.0], [n, 3 * size]),
        A,
        np.concatenate([given.ravel(), np.full(2 * d, -np.inf)]),
        np.concatenate([given.ravel(), np.full(2 * d, budget)]),
        np.repeat([0.0, -np.inf, 0.0], [n, size, 2 * size]),
        np.repeat([1.0, np.inf], [n, 3 * size]),
        np.repeat([True, False], [n, 3 * size]),
        sense="max",
    )
    problem = dt.Problem(mip)
    treated = n + np.arange(size).reshape(n, d)
    problem.add_predictor(model, treated, np.arange(n)[:, None], output_type="classification")
    return problem, [model]


def plant(trees: int, depth: int, seed: int) -> Built:
    """The largest output less what the inputs cost."""
    import xgboost

    rng, d = np.random.default_rng(seed), 20
    X = rng.uniform(-1.0, 1.0, (4000, d))
    X[:, :5] = np.round(X[:, :5] * 3.0)
    y = 5.0 * np.sin(2.0 * X[:, 5] * X[:, 6]) + X[:, 0] * X[:, 7] + 3.0 * np.cos(3.0 * X[:, 8])
    y += (X[:, 9] > 0.2) * X[:, 10] * 4.0 + X @ rng.normal(size=d) + 0.3 * rng.normal(size=4000)
    model = xgboost.XGBRegressor(n_estimators=trees, max_depth=depth, learning_rate=0.1, n_jobs=1).fit(X, y)
    ends = np.repeat([3.0, 1.0, np.inf], [5, d - 5, 1])
    mip = dt.Mip(
        np.append(-rng.uniform(0.0, 1.0, d), 1.0),
        np.column_stack([rng.normal(size=(4, d)), np.zeros(4)]),
        -np.inf,
        0.5,
        -ends,
        ends,
        np.arange(d + 1) < 5,
        sense="max",
    )
    problem = dt.Problem(mip)
    problem.add_predictor(model, np.arange(d), [d])
    return problem, [model]


def wine(trees: int, depth: int, seed: int) -> Built:
    """The generator's vineyards and blends; a forest says what they are worth."""
    from dovetail.problems.wine import look_alike
    from dovetail.problems.wine import wine as generated

    host = generated(seed=seed, epochs=1, allow_constant=True).problem
    return _with_forests(host, [look_alike(seed)], trees, depth, seed)


def planting(trees: int, depth: int, seed: int) -> Built:
    """The generator's site and budgets; a forest for each species says how many live."""
    from dovetail.problems.tree import look_alike, tree

    host = tree(seed=seed, epochs=1, allow_constant=True).problem
    species, X, survived = look_alike(seed)
    data = [(X[species == k], survived[species == k]) for k in range(len(host.blocks))]
    return _with_forests(host, data, trees, depth, seed)


def _with_forests(host: dt.Problem, data: Sequence[Any], trees: int, depth: int, seed: int) -> Built:
    from sklearn.ensemble import RandomForestRegressor

    problem, models = dt.Problem(host.mip), []
    for block, (X, y) in zip(host.blocks, data, strict=True):
        models.append(RandomForestRegressor(trees, max_depth=depth, random_state=seed).fit(X, y))
        problem.add_predictor(models[-1], block.inputs, block.outputs, name=block.name)
    return problem, models


FAMILIES: dict[str, Callable[[int, int, int], Built]] = {
    "diet": diet,
    "water": water,
    "plant": plant,
    "wine": wine,
    "planting": planting,
}


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


@dataclass(frozen=True)
class Answer:
    """What came of it; NaN where nothing did."""

    objective: float
    bound: float
    proved: bool
    cpu: float
    note: str = ""


def answered(asked: Asked) -> Answer:
    """Build, and solve once."""
    import torch

    torch.set_num_threads(1)
    problem, models = FAMILIES[asked.family](asked.trees, asked.depth, asked.seed)
    before = time.process_time()
    if asked.solve_seed is None:
        return _peer(problem, models, asked.seconds, before)
    result = dt.solve(problem, time_limit=asked.seconds, seed=asked.solve_seed, log=False)
    cpu = time.process_time() - before
    objective, bound = (
        np.nan if value is None else float(value) for value in (result.objective, result.bound)
    )
    first = next((row.elapsed for row in result.trace if not np.isnan(row.incumbent)), np.nan)
    return Answer(objective, bound, result.status == "optimal", cpu, f"first point {first:.1f} s")


def _peer(problem: dt.Problem, models: list[Any], seconds: float, before: float) -> Answer:
    """SCIP's word in its own CPU seconds; its point as `predict` and the check see it."""
    try:
        from pyscipopt import Model
        from pyscipopt_ml.add_predictor import add_predictor_constr
    except ImportError:
        return Answer(np.nan, np.nan, False, np.nan, "PySCIPOpt-ML is not installed")
    mip, scip = problem.mip.minimised(), Model()
    scip.hideOutput()
    kinds = np.where(mip.integer, "I", "C")
    x = np.array(
        [scip.addVar(lb=low, ub=high, vtype=kind) for low, high, kind in _ends(mip, kinds)], dtype=object
    )
    for row in range(mip.n_rows):
        entries = mip.A[[row]].tocoo()
        total = sum(float(a) * x[j] for j, a in zip(entries.col, entries.data, strict=True))
        if np.isfinite(mip.row_lower[row]):
            scip.addCons(total >= mip.row_lower[row])
        if np.isfinite(mip.row_upper[row]):
            scip.addCons(total <= mip.row_upper[row])
    scip.setObjective(sum(float(c) * column for c, column in zip(mip.cost, x, strict=True)) + mip.offset)
    try:
        for block, model in zip(problem.blocks, models, strict=True):
            kind = {"output_type": "classification"} if block.classifies else {}
            add_predictor_constr(scip, model, x[block.inputs], x[block.outputs], epsilon=EPSILON, **kind)
    except Exception as trouble:
        return Answer(np.nan, np.nan, False, time.process_time() - before, f"{type(trouble).__name__}")
    built = time.process_time() - before
    for name, value in (("limits/time", seconds), ("timing/clocktype", 1), ("limits/memory", MEMORY)):
        scip.setParam(name, value)
    scip.optimize()
    cpu, bound = time.process_time() - before, problem.mip.sign * scip.getDualbound()
    note = f"{built:.1f} s to build"
    if not scip.getNSols():
        return Answer(np.nan, bound, False, cpu, note)
    point = problem.predict(np.array([scip.getVal(column) for column in x]))
    if not dt.check(problem, point).within():
        note += "; `predict` or the check says otherwise of its point"
    return Answer(problem.mip.sign * scip.getObjVal(), bound, scip.getStatus() == "optimal", cpu, note)


def _ends(mip: dt.Mip, kinds: Any) -> Any:
    ends = ((None if np.isinf(end) else end for end in side) for side in (mip.lower, mip.upper))
    return zip(*ends, kinds, strict=True)


def run(
    names: Sequence[str],
    seeds: Sequence[int],
    seconds: float,
    solve_seeds: Sequence[int],
    peer: bool,
    jobs: int,
) -> Table:
    """All instances, ours first."""
    table = Table(
        "trees",
        f"Tree ensembles, {seconds:g} s",
        ["instance", "who", "objective", "bound", "CPU s", "remarks"],
        reading="CPU seconds, one thread. A time limit of auto's is one of the wall: quiet machines only.",
    )
    whose: list[int | None] = [*solve_seeds, *([None] if peer else [])]
    asked = [
        Asked(family, *(int(part) for part in size.split("x")), seed, seconds, who)
        for family, size in (name.split(":") for name in names)
        for seed in seeds
        for who in whose
    ]
    for one, answer in zip(asked, each(answered, asked, jobs), strict=True):
        instance = f"{one.family}, {one.trees} trees of depth {one.depth}, seed {one.seed}"
        who = "PySCIPOpt-ML" if one.solve_seed is None else f"auto, seed {one.solve_seed}"
        proved = ", proved" if answer.proved else ""
        found = "none" if np.isnan(answer.objective) else f"{answer.objective:.8g}{proved}"
        table.rows.append([instance, who, found, f"{answer.bound:.6g}", f"{answer.cpu:.1f}", answer.note])
    return table


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trees", description=__doc__)
    parser.add_argument("instances", nargs="*", default=["diet:4x4", "diet:30x5", "water:10x5"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--solve-seeds", type=int, nargs="*", default=[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    run(
        options.instances,
        options.seeds,
        options.seconds,
        options.solve_seeds,
        not options.no_peer,
        options.jobs,
    ).show(Console())


if __name__ == "__main__":
    main()
