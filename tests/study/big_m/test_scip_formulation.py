"""The written model holds every point of the problem: a network's own values satisfy each row and bound."""

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.core.arrays import FloatArray
from dovetail.core.predictor import as_predictor
from dovetail.networks.layers import Activation, evaluate
from dovetail_study.big_m.scip_formulation import CHUNK, ScipFormulation

SAMPLES, FREE, FIXED = CHUNK + 2, 3, 2
"""More samples than one call formulates; some inputs are facts, as in tree planting."""


def network(seed, ending):
    torch.manual_seed(seed)
    hidden = (nn.Linear(FREE + FIXED, 6), nn.ReLU(), nn.Linear(6, 5), nn.ReLU())
    return nn.Sequential(*hidden, nn.Linear(5, 2), *ending)


def neurons(layers, X: FloatArray, call: int) -> dict[str, float]:
    """The values of what PySCIPOpt-ML adds in one call, by its names."""
    values = {}
    for i, layer in enumerate(layers):
        Y = evaluate((layer,), X)
        for (s, j), y in np.ndenumerate(Y):
            values[f"n{call}_layer_{i}_{s}_{j}"] = y
            if isinstance(layer, Activation) and layer.kind == "relu":
                values[f"n{call}_relu_{i}__relu_act_{s}_{j}"] = float(X[s, j] > 0.0)
                values[f"n{call}_relu_{i}__slack_{s}_{j}"] = y - X[s, j]
        X = Y
    return values


@pytest.mark.parametrize("formulation", ["bigm", "sos"])
@pytest.mark.parametrize("ending", [(), (nn.Sigmoid(),)])
@pytest.mark.parametrize("seed", range(3))
def test_what_the_networks_compute_is_feasible_in_the_model(formulation, ending, seed):
    """Two networks share their inputs, which sit in corners of their box and inside it."""
    inputs = np.arange(SAMPLES * (FREE + FIXED)).reshape(SAMPLES, FREE + FIXED)
    outputs = inputs.size + np.arange(4 * SAMPLES).reshape(2, SAMPLES, 2)
    rng = np.random.default_rng(seed)
    x = np.zeros(inputs.size + outputs.size)
    x[inputs] = rng.integers(0, 2, inputs.shape)
    x[inputs[::3]] = rng.random(inputs[::3].shape)
    lower, upper = np.full(x.size, -np.inf), np.full(x.size, np.inf)
    lower[inputs], upper[inputs] = 0.0, 1.0
    lower[inputs[:, FREE:]] = upper[inputs[:, FREE:]] = x[inputs[:, FREE:]]
    model = ScipFormulation(dt.Mip(cost=np.ones(x.size), lower=lower, upper=upper), lower, upper)
    values, calls = {}, 0
    for k, columns in enumerate(outputs):
        layers = as_predictor(network(2 * seed + k, ending)).layers()
        x[columns] = evaluate(layers, x[inputs])
        model.add(layers, inputs, columns, formulation)
        for first in range(0, SAMPLES, CHUNK):
            calls += 1
            values |= neurons(layers, x[inputs[first : first + CHUNK]], calls)
    values |= {f"c{j}": value for j, value in enumerate(x)}
    scip = model._model
    solution = scip.createSol()
    for variable in scip.getVars():
        value = values[variable.name]
        assert variable.getLbOriginal() - 1e-12 <= value <= variable.getUbOriginal() + 1e-12
        scip.setSolVal(solution, variable, value)
    scip.setParam("numerics/feastol", 1e-9)
    assert scip.checkSol(solution, original=True)
    scip.setSolVal(solution, model._columns[outputs[0, 0, 0]], x[outputs[0, 0, 0]] + 1e-6)
    assert not scip.checkSol(solution, original=True)  # so that it is a check
