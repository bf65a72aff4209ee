"""Running a method over instances and judging what it says against the truth."""

from __future__ import annotations

import numpy as np
import torch

import dovetail as dt

from .instances import Instance
from .tally import Tally
from .truth import Truth, truth, unbeatable

RANDOM_POINTS = 100
CLOSE = 1e-4


def as_problem(instance: Instance) -> dt.Problem:
    """The instance through dovetail's public names."""
    mip = dt.Mip(
        cost=instance.cost,
        A=instance.A,
        row_lower=instance.row_lower,
        row_upper=instance.row_upper,
        lower=instance.lower,
        upper=instance.upper,
        integer=instance.integer,
        sense=instance.sense,
    )
    problem = dt.Problem(mip)
    for net in instance.nets:
        layers: list[torch.nn.Module] = []
        for W, b in zip(net.weights, net.biases, strict=True):
            linear = torch.nn.Linear(W.shape[1], W.shape[0], dtype=torch.float64)
            with torch.no_grad():
                linear.weight.copy_(torch.from_numpy(W))
                linear.bias.copy_(torch.from_numpy(b))
            layers += [linear, torch.nn.ReLU()]
        problem.add_predictor(
            torch.nn.Sequential(*layers[:-1]),
            net.inputs,
            net.outputs,
            output_type="classification" if net.classifies else "regression",
        )
    return problem


def judge(instance: Instance, method: object, tally: Tally, **options: object) -> None:
    """Solve one instance and enter what is true and what is not into the tally."""
    facts = truth(instance)
    result = dt.solve(as_problem(instance), method, gap=1e-6, log=False, **options)  # type: ignore[arg-type]
    kind = instance.kind
    tally.add(kind, "instances")
    _faults(instance, facts, result, tally)
    if facts.unbeatable is None:
        tally.add(kind, "infeasible")
        return
    if instance.on_outputs.any() and _cuts(instance, facts):
        tally.add(kind, "active")
    if facts.attained is None:
        return  # feasible only within a hair of a class boundary
    if _random_solves(instance, facts.attained):
        tally.add(kind, "easy")
        return
    tally.add(kind, "counted")
    if result.x is not None:
        tally.add(kind, "found")
        if _as_good(instance, result.objective, facts.attained):
            tally.add(kind, "optimum")


def _faults(instance: Instance, facts: Truth, result: dt.Result, tally: Tally) -> None:
    """Claims that are not true."""
    where = f"instance {instance.seed} ({instance.kind})"
    if result.status == "infeasible" and facts.unbeatable is not None:
        tally.faults.append(f"{where}: called infeasible, but {facts.unbeatable} is attained")
    if result.status in ("error", "unbounded"):
        tally.faults.append(f"{where}: status {result.status}: {result.message}")
    if result.x is None:
        return
    whole = instance.completed(result.x[instance.decisions][None, :])[0]
    if np.abs(whole - result.x).max() > 1e-6 or not instance.feasible(result.x[None, :])[0]:
        tally.faults.append(f"{where}: the point is not feasible")
    if facts.unbeatable is None:
        tally.faults.append(f"{where}: a point of an infeasible problem")
        return
    sign = 1.0 if instance.sense == "min" else -1.0
    slack = 1e-5 * max(1.0, abs(facts.unbeatable))
    # Where logits lie within a hair of 0 at whole points the two truths differ, and the optimum is between
    # them: only what is worse than the one that is surely attained is surely wrong.
    sure = facts.unbeatable if facts.attained is None else facts.attained
    if sign * result.objective < sign * facts.unbeatable - slack:
        tally.faults.append(f"{where}: {result.objective} beats the optimum {facts.unbeatable}")
    if result.status == "optimal" and not _as_good(instance, result.objective, sure, 1e-5):
        tally.faults.append(f"{where}: {result.objective} called optimal, the optimum is {sure}")
    if result.bound is not None and sign * result.bound > sign * sure + slack:
        tally.faults.append(f"{where}: bound {result.bound} is wrong, the optimum is {sure}")


def _as_good(instance: Instance, value: float, optimum: float, close: float = CLOSE) -> bool:
    sign = 1.0 if instance.sense == "min" else -1.0
    return sign * value <= sign * optimum + close * max(1.0, abs(optimum))


def _cuts(instance: Instance, facts: Truth) -> bool:
    """Whether the rows on outputs matter: without them the optimum is another."""
    free = unbeatable(instance.without_output_rows())
    return free is None or abs(free - facts.unbeatable) > 1e-6


def _random_solves(instance: Instance, optimum: float) -> bool:
    rng = np.random.default_rng(instance.seed)
    z = instance.completed(instance.random_decisions(RANDOM_POINTS, rng))
    values = (z @ instance.cost)[instance.feasible(z)]
    if len(values) == 0:
        return False
    return _as_good(instance, float(values.min() if instance.sense == "min" else values.max()), optimum)
