"""Mistakes that people make, by the heading under which docs/errors.md has what is said to them."""

import numpy as np
import torch

import dovetail as dt


def problem(**changes):
    """Three settings and a yield."""
    given = {
        "cost": [-0.2, -0.1, -0.3, 10.0],
        "A": [[1.0, 1.0, 0.5, 0.0]],
        "row_lower": [0.5],
        "row_upper": [2.0],
        "lower": [0.0, 0.0, 0.0, -np.inf],
        "upper": [1.0, 1.0, 3.0, np.inf],
        "sense": "max",
        "names": ["heat", "flow", "units", "yield"],
    }
    return dt.Problem(dt.Mip(**{**given, **changes}))


def net(inputs=3, outputs=1):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(inputs, 4), torch.nn.ReLU(), torch.nn.Linear(4, outputs))


def tied(predictor, inputs=("heat", "flow", "units"), outputs=("yield",), **options):
    made = problem()
    made.add_predictor(predictor, list(inputs), list(outputs), **options)
    return made


def spoilt():
    module = net()
    with torch.no_grad():
        module[0].weight[0, 0] = torch.nan
    return module


def unheard():
    import pyomo.environ as pyo

    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 1))
    model.row = pyo.Constraint(expr=pyo.atan(model.x) <= 0.5)
    model.goal = pyo.Objective(expr=model.x)
    return dt.solve(model, log=False)


def pickled(folder):
    import pickle

    path = folder / "model.pkl"
    path.write_bytes(pickle.dumps({"weights": [1.0]}))
    return dt.load_predictor(path)


MISTAKES = {
    "An unknown variable": lambda _: tied(net(), inputs=("heat", "flaw", "units")),
    "Shapes do not fit": lambda _: tied(net(2)),
    "Too few outputs": lambda _: tied(net(3, 2)),
    "The network contains NaN": lambda _: tied(spoilt()),
    "Samples of a batch influence each other": lambda _: tied(lambda X: X[:, :1] - X.mean()),
    "Probability or logit?": lambda _: tied(
        lambda X: 1 / (1 + np.exp(-X.sum(axis=1))), output_type="classification"
    ),
    "An unknown method": lambda _: dt.solve(tied(net()), "dual-decompositon", log=False),
    "An unknown option": lambda _: dt.add_predictor_constr(
        problem(), net(), ["heat", "flow", "units"], ["yield"], formulatoin="bigm"
    ),
    "Bounds cross": lambda _: problem(lower=[0.0, 2.0, 0.0, -np.inf]),
    "NaN in the data": lambda _: problem(cost=[np.nan, 0.0, 0.0, 1.0]),
    "Nonlinear constraints": lambda _: unheard(),
    "A file that would run code": lambda folder: pickled(folder),
    "A start that does not fit": lambda _: dt.solve(tied(net()), start=[1.0, 2.0], log=False),
}
