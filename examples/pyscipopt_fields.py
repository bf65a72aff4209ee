"""Seed, water and nitrogen for six fields, in PySCIPOpt; a network predicts the harvest.

A program for PySCIPOpt-ML with two lines changed: the import and the solve call.
"""

import numpy as np
import torch
from pyscipopt import Model, quicksum

from dovetail import add_predictor_constr, solve

FIELDS = 6


def trained_network() -> torch.nn.Module:
    """Harvest of a field from seed, water and nitrogen (each 0 to 1)."""
    torch.manual_seed(0)
    inputs = torch.rand(2000, 3)
    seed, water, nitrogen = inputs.T
    harvest = 4 * seed.sqrt() * (water * (1.6 - water)) + 2 * nitrogen * water - 1.5 * nitrogen**2
    net = torch.nn.Sequential(
        torch.nn.Linear(3, 16),
        torch.nn.ReLU(),
        torch.nn.Linear(16, 16),
        torch.nn.ReLU(),
        torch.nn.Linear(16, 1),
    )
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(300):
        optimiser.zero_grad()
        torch.nn.functional.mse_loss(net(inputs), harvest[:, None]).backward()
        optimiser.step()
    return net


net = trained_network()
scip = Model("fields")
x = scip.addMatrixVar((FIELDS, 3), lb=0, ub=1, name="x")
y = scip.addMatrixVar((FIELDS, 1), lb=None, name="harvest")
planted = [scip.addVar(f"planted_{i}", vtype="B") for i in range(FIELDS)]
worth = [scip.addVar(f"worth_{i}", lb=0) for i in range(FIELDS)]

scip.addCons(quicksum(x[i, 1] for i in range(FIELDS)) <= 2.4, "water")
scip.addCons(quicksum(x[i, 2] for i in range(FIELDS)) <= 1.5, "nitrogen")
scip.addCons(quicksum(planted) <= 4, "machines")
for i in range(FIELDS):
    scip.addCons(x[i, 0] <= planted[i])
    scip.addCons(worth[i] <= 5 * planted[i])
    scip.addCons(worth[i] <= y[i, 0])

pred_cons = add_predictor_constr(
    scip, net, x, y, unique_naming_prefix="harvest_", formulation="bigm", output_type="regression"
)
scip.setObjective(quicksum(worth) - 0.3 * quicksum(x[i, 0] for i in range(FIELDS)), "maximize")

result = solve(scip, time_limit=5)

print(np.round(result.value(x), 2))
print("planted", [round(value) for value in result.value(planted)])
print(f"worth {result.objective:.3f}, largest error {np.max(pred_cons.get_error(1e-6)):.1e}")
