"""One argument changed, everything else left: sub-solvers and engines side by side."""

from __future__ import annotations

from dataclasses import replace

import dovetail as dt
from dovetail.core.problem import Problem
from dovetail_study.experiment import ResultTable
from dovetail_study.problems.tree import tree
from dovetail_study.problems.water import water

SOLVERS = {
    "projected gradient": dt.ProjectedGradient(),
    "barrier, Newton-CG": dt.LogBarrier(),
    "barrier, L-BFGS-B": dt.LogBarrier(variant="l-bfgs-b"),
}
ENGINES = {"water": ("piqp", "highs", "scip"), "tree": ("highs", "scip")}
"""Those that take the problem, the default one first: PIQP knows no integers."""


def run() -> ResultTable:
    table = ResultTable(
        "swaps",
        "Parts swapped by one argument (objective: more is better)",
        ["problem", "engine", "sub-solver", "objective", "iterations", "residual", "MIP, s", "network, s"],
    )
    for name, problem in _problems().items():
        base = dt.DualDecomposition(engine=ENGINES[name.split()[0]][0])
        runs = [replace(base, nn_solver=solver) for solver in SOLVERS.values()]
        runs += [replace(base, engine=engine) for engine in ENGINES[name.split()[0]][1:]]
        labels = [*SOLVERS, *["projected gradient"] * (len(runs) - len(SOLVERS))]
        for method, label in zip(runs, labels, strict=True):
            result = dt.solve(problem, method, time_limit=120, log=False)
            table.rows.append(
                [
                    name,
                    method.engine,
                    label,
                    "none" if result.objective is None else f"{result.objective:.4f}",
                    str(result.iterations),
                    f"{result.residual or 0.0:.1e}",
                    f"{result.profile.engine:.1f}",
                    f"{result.profile.network + result.profile.subsolver:.1f}",
                ]
            )
    table.reading = (
        "Incumbents may differ: a sub-solver may find another local minimum, an engine another of several "
        "best integer points. The MIP step of water has no integers."
    )
    return table


def _problems() -> dict[str, Problem]:
    return {"water n = 25, 2x16": water(25, "2x16").problem, "tree 3x3, 2x16": tree(3, "2x16").problem}
