"""Random small quadratic programs in gurobipy, with and without integers and a small network.

Gurobi has the truth: the same model, the network written out by its own maxima, to a gap of 1e-9.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gurobipy as gp
import numpy as np
import torch
from gurobipy import GRB
from torch import nn

import dovetail as dt

KINDS = ("squares", "convex", "products", "mixed", "rows", "hollow rows", "free")
TOLERANCE = 2e-5
"""Relative to 1 + |value|: both sides keep rows to 1e-6, and rows have prices."""


@dataclass(frozen=True, eq=False)
class Case:
    """A model, what it is maximised or minimised by, and its network."""

    model: Any
    x: Any
    y: Any = None
    network: nn.Module | None = None


def environment() -> Any:
    """One that says nothing."""
    return gp.Env(params={"OutputFlag": 0, "Threads": 1, "NonConvex": 2, "MIPGap": 1e-9, "TimeLimit": 20})


def make(env: Any, kind: str, seed: int, *, integers: bool, network: bool) -> Case:
    """A case of a kind."""
    rng = np.random.default_rng([seed, KINDS.index(kind), integers, network])
    n = int(rng.integers(2, 5))
    model = gp.Model(env=env)
    bound = GRB.INFINITY if kind == "free" else float(rng.integers(2, 5))
    types = ["I" if integers and rng.random() < 0.6 else "C" for _ in range(n)]
    x = model.addMVar(n, lb=-bound, ub=bound, vtype=types, name="x")
    Q = _matrix(rng, n, "squares" if kind == "free" else kind)
    cost = rng.integers(-4, 5, n) / 2.0
    sign = -1.0 if rng.random() < 0.5 else 1.0
    goal = x @ Q @ x + cost @ x + float(rng.integers(-3, 4))
    model.addConstr(rng.integers(-2, 3, n) @ x <= float(rng.integers(0, 4)), name="row")
    if "rows" in kind:
        shape = _matrix(rng, n, "convex")
        size = float(rng.integers(1, 9))
        hollow = kind == "hollow rows"
        model.addConstr(x @ shape @ x >= size if hollow else x @ shape @ x <= size, name="round")
    y = None
    net = _network(rng) if network else None
    if net is not None:
        y = model.addMVar(1, lb=-GRB.INFINITY, name="y")
        goal = goal + float(rng.integers(-2, 3)) * y.sum()
        model.addConstr(y.sum() <= 6.0)
    model.setObjective(sign * goal, GRB.MINIMIZE if sign > 0 else GRB.MAXIMIZE)
    model.update()
    return Case(model, x, y, net)


def _matrix(rng: np.random.Generator, n: int, kind: str) -> np.ndarray:
    if kind == "squares":
        return np.diag(rng.integers(1, 5, n) / 2.0)
    if kind in ("convex", "rows"):
        half = rng.integers(-2, 3, (int(rng.integers(1, n + 1)), n)) / 2.0
        return np.asarray(half.T @ half)
    found = rng.integers(-3, 4, (n, n)) / 2.0
    if kind == "products":
        return np.triu(found, 1)
    return found


def _network(rng: np.random.Generator) -> nn.Module:
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)).double()
    with torch.no_grad():
        for part in net.parameters():
            part.copy_(torch.from_numpy(rng.integers(-4, 5, tuple(part.shape)) / 4.0))
    return net


def truth(case: Case) -> tuple[str, float]:
    """What Gurobi says: its status and the optimum."""
    model = case.model.copy()
    if case.network is not None:
        first, _, last = case.network
        variables = {v.VarName: v for v in model.getVars()}
        x = [variables["x[0]"], variables["x[1]"]]
        (W, b), (V, c) = ([p.detach().numpy() for p in layer.parameters()] for layer in (first, last))
        hidden = []
        for row, bias in zip(W, b, strict=True):
            before, after = model.addVar(lb=-GRB.INFINITY), model.addVar()
            model.addConstr(before == gp.quicksum(w * v for w, v in zip(row, x, strict=True)) + bias)
            model.addGenConstrMax(after, [before], 0.0)
            hidden.append(after)
        total = gp.quicksum(v * h for v, h in zip(V[0], hidden, strict=True)) + c[0]
        model.addConstr(variables["y[0]"] == total)
    model.optimize()
    names = {GRB.OPTIMAL: "optimal", GRB.INFEASIBLE: "infeasible", GRB.UNBOUNDED: "unbounded"}
    status = names.get(model.Status, str(model.Status))
    if model.Status == GRB.INF_OR_UNBD:
        model.Params.DualReductions = 0
        model.optimize()
        status = names.get(model.Status, str(model.Status))
    return status, model.ObjVal if status == "optimal" else float("nan")


def judged(case: Case, seconds: float = 3.0) -> tuple[dt.Result, list[str]]:
    """A solve, and what is wrong with it."""
    said, best = truth(case)
    if case.network is not None:
        dt.add_predictor_constr(case.model, case.network, case.x[:2], case.y)
    result = dt.solve(case.model, time_limit=seconds, gap=1e-6, log=False, load=False)
    wrong = []
    sign = 1.0 if case.model.ModelSense > 0 else -1.0
    room = TOLERANCE * (1.0 + abs(best))
    if result.status in ("infeasible", "unbounded") and result.status != said:
        wrong.append(f"{result.status}, Gurobi: {said} {best}")
    if said == "optimal":
        if result.objective is not None and sign * (best - result.objective) > room:
            wrong.append(f"objective {result.objective} beats Gurobi's {best}")
        if result.bound is not None and sign * (result.bound - best) > room:
            wrong.append(f"bound {result.bound} is beyond Gurobi's {best}")
        if result.status == "optimal" and abs(result.objective - best) > room:
            wrong.append(f"optimal {result.objective}, Gurobi: {best}")
    if said == "infeasible" and result.objective is not None:
        wrong.append(f"objective {result.objective}, Gurobi: infeasible")
    return result, wrong
