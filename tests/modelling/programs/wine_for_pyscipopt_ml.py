"""Wine blending, written for PySCIPOpt-ML with a torch network (SurrogateLIB's model, its test size)."""

import numpy as np
import torch
from pyscipopt import Model, quicksum
from pyscipopt_ml.add_predictor import add_predictor_constr

from dovetail_study.problems.wine import look_alike

VINEYARDS, WINES = 10, 2

rng = np.random.RandomState(1)
X, quality = look_alike(0)
X = X / X.std(axis=0)
order = rng.permutation(len(X))
limits, costs = rng.uniform(0.25, 0.35, VINEYARDS), rng.uniform(1, 2, VINEYARDS)
torch.manual_seed(0)
layers = [
    torch.nn.Linear(11, 7),
    torch.nn.ReLU(),
    torch.nn.Linear(7, 7),
    torch.nn.ReLU(),
    torch.nn.Linear(7, 1),
]
net = torch.nn.Sequential(*layers)
optimiser = torch.optim.Adam(net.parameters(), lr=1e-2)
inputs, targets = torch.tensor(X, dtype=torch.float32), torch.tensor(quality, dtype=torch.float32)[:, None]
for _ in range(60):
    optimiser.zero_grad()
    torch.nn.functional.mse_loss(net(inputs), targets).backward()
    optimiser.step()
least = 4.2

F = X[[row for row in order if quality[row] <= 5][:VINEYARDS]]
low, high = X.min(axis=0), X.max(axis=0)
scip = Model()
q = np.array([[scip.addVar(lb=0, ub=10, name=f"quality_{i}")] for i in range(WINES)])
x = np.zeros((WINES, 11), dtype=object)
m = np.zeros((WINES, VINEYARDS), dtype=object)
for i in range(WINES):
    for j in range(11):
        x[i, j] = scip.addVar(lb=max(0, low[j] - 0.1 * high[j]), ub=1.1 * high[j], name=f"x_{i}_{j}")
    for k in range(VINEYARDS):
        m[i, k] = scip.addVar(lb=0, ub=limits[k], name=f"share_{i}_{k}")
    for j in range(11):
        scip.addCons(x[i, j] == quicksum(m[i, k] * F[k, j] for k in range(VINEYARDS)))
    scip.addCons(quicksum(m[i]) == 1)
    scip.addCons(q[i, 0] >= least)
for k in range(VINEYARDS):
    scip.addCons(quicksum(m[i, k] for i in range(WINES)) <= limits[k])
scip.addCons(quicksum(m[i, k] * costs[k] for i in range(WINES) for k in range(VINEYARDS)) <= 1.7 * WINES)
pred_cons = add_predictor_constr(scip, net, x, q, unique_naming_prefix="wine_", epsilon=1e-4)
scip.setObjective(10 - quicksum(q[i, 0] for i in range(WINES)) / WINES)
scip.setParam("limits/time", 60)
scip.hideOutput()

scip.optimize()

error = pred_cons.get_error(1e-6)
point, found = [scip.getVal(variable) for variable in x.ravel()], scip.getObjVal()
