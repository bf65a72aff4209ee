"""Empty models and a linear predictor, for tests of one thing each."""

import gurobipy as gp
import highspy
import torch

import dovetail as dt


def times(*weights):
    """y = weights'x."""
    net = torch.nn.Linear(len(weights), 1, dtype=torch.float64)
    with torch.no_grad():
        net.weight[:] = torch.tensor([weights], dtype=torch.float64)
        net.bias[:] = 0.0
    return net


def solve(model, **options):
    return dt.solve(model, log=False, **options)


def in_gurobi():
    return gp.Model(env=gp.Env(params={"OutputFlag": 0}))


def in_highs():
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    return model
