"""The true optimum of an instance, by code that shares nothing with dovetail.

Without continuous decisions: every combination is tried. With them: big-M rows written here, solved
by SCIP. A class is decided at a logit of 0, and solvers have tolerances, so two optima are computed:
one where logits within a hair of 0 may count as either class (nothing true can beat it), one where
logits keep a margin (surely attained).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pyscipopt

from .instances import Instance, Net

HAIR, MARGIN = 1e-6, 1e-3


@dataclass(frozen=True)
class Truth:
    """Optima in the instance's own sense; None where infeasible."""

    unbeatable: float | None
    attained: float | None


def truth(instance: Instance) -> Truth:
    """Both optima of an instance."""
    best = unbeatable(instance)
    if _whole(instance) or not any(net.classifies for net in instance.nets):
        return Truth(best, best)
    return Truth(best, _big_m(instance, MARGIN))


def unbeatable(instance: Instance) -> float | None:
    """The first of the two alone, in half the time."""
    return _enumerate(instance) if _whole(instance) else _big_m(instance, -HAIR)


def _whole(instance: Instance) -> bool:
    return bool(np.all(instance.integer[instance.decisions]))


def _enumerate(instance: Instance) -> float | None:
    ranges = [np.arange(instance.lower[j], instance.upper[j] + 1) for j in instance.decisions]
    z = instance.completed(np.array(list(itertools.product(*ranges))))
    values = (z @ instance.cost)[instance.feasible(z, 1e-9)]
    if len(values) == 0:
        return None
    return float(values.min() if instance.sense == "min" else values.max())


def _big_m(instance: Instance, margin: float) -> float | None:
    model = pyscipopt.Model()
    model.hideOutput()
    model.setParam("numerics/feastol", 1e-9)
    model.setParam("limits/time", 60.0)
    low, high = instance.lower.copy(), instance.upper.copy()
    z = [
        model.addVar(
            vtype="I" if instance.integer[j] else "C",
            lb=None if np.isinf(low[j]) else low[j],
            ub=None if np.isinf(high[j]) else high[j],
        )
        for j in range(len(instance.cost))
    ]
    for net in instance.nets:
        for i in range(len(net.inputs)):
            _embed(model, net, i, z, low, high, margin)
    for row, lower, upper in zip(instance.A, instance.row_lower, instance.row_upper, strict=True):
        total = pyscipopt.quicksum(a * v for a, v in zip(row, z, strict=True))
        if np.isfinite(lower):
            model.addCons(total >= lower)
        if np.isfinite(upper):
            model.addCons(total <= upper)
    total = pyscipopt.quicksum(c * v for c, v in zip(instance.cost, z, strict=True))
    model.setObjective(total, "minimize" if instance.sense == "min" else "maximize")
    model.optimize()
    status = model.getStatus()
    if status == "infeasible":
        return None
    assert status == "optimal", f"instance {instance.seed}: SCIP ended with {status}"
    return float(model.getObjVal())


def _embed(
    model: pyscipopt.Model,
    net: Net,
    i: int,
    z: list[pyscipopt.Variable],
    low: np.ndarray,
    high: np.ndarray,
    margin: float,
) -> None:
    """Rows that make z[outputs[i]] the network at z[inputs[i]]; bounds by interval arithmetic."""
    units = [z[j] for j in net.inputs[i]]
    a, b = low[net.inputs[i]], high[net.inputs[i]]
    last = len(net.weights) - 1
    for layer, (W, bias) in enumerate(zip(net.weights, net.biases, strict=True)):
        least = np.maximum(W, 0) @ a + np.minimum(W, 0) @ b + bias
        most = np.maximum(W, 0) @ b + np.minimum(W, 0) @ a + bias
        sums = [
            pyscipopt.quicksum(w * u for w, u in zip(row, units, strict=True)) + c
            for row, c in zip(W, bias, strict=True)
        ]
        if layer == last:
            _outputs(model, net, i, z, sums, least, most, margin)
            if not net.classifies:
                low[net.outputs[i]], high[net.outputs[i]] = least, most
            else:
                low[net.outputs[i]], high[net.outputs[i]] = 0.0, 1.0
            return
        units = [_relu(model, s, lo, hi) for s, lo, hi in zip(sums, least, most, strict=True)]
        a, b = np.maximum(least, 0.0), np.maximum(most, 0.0)


def _relu(model: pyscipopt.Model, total: pyscipopt.Expr, least: float, most: float) -> pyscipopt.Variable:
    out = model.addVar(lb=0.0, ub=max(most, 0.0))
    on = model.addVar(vtype="B")
    model.addCons(out >= total)
    model.addCons(out <= total - min(least, 0.0) * (1 - on))
    model.addCons(out <= max(most, 0.0) * on)
    return out


def _outputs(
    model: pyscipopt.Model,
    net: Net,
    i: int,
    z: list[pyscipopt.Variable],
    sums: list[pyscipopt.Expr],
    least: np.ndarray,
    most: np.ndarray,
    margin: float,
) -> None:
    columns = [z[j] for j in net.outputs[i]]
    if not net.classifies:
        for column, total in zip(columns, sums, strict=True):
            model.addCons(column == total)
        return
    flags = [model.addVar(vtype="B") for _ in columns]
    for column, flag in zip(columns, flags, strict=True):
        model.addCons(column == flag)
    if len(columns) == 1:
        model.addCons(sums[0] >= margin + (least[0] - margin) * (1 - flags[0]))
        model.addCons(sums[0] <= -margin + (most[0] + margin) * flags[0])
        return
    model.addCons(pyscipopt.quicksum(flags) == 1)
    for c, flag in enumerate(flags):
        for o in range(len(flags)):
            if o != c:
                reach = least[c] - most[o] - margin
                model.addCons(sums[c] - sums[o] >= margin + reach * (1 - flag))
