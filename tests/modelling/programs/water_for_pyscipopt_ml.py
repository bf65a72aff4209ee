"""Water potability, written for PySCIPOpt-ML with a scikit-learn classifier (SurrogateLIB's model)."""

import numpy as np
from pyscipopt import Model, quicksum
from pyscipopt_ml.add_predictor import add_predictor_constr
from sklearn.neural_network import MLPClassifier

from dovetail_study.problems.water import look_alike

REMOVAL = [(1.8, 2.5), (20, 25), (180, 250), (0.9, 1.1), (19, 21), (19, 21), (1.2, 1.8), (4.5, 6), (0.9, 1.1)]

rng = np.random.RandomState(0)
removal = [rng.uniform(low, high) for low, high in REMOVAL]
addition = [rng.uniform(low, high) for low, high in REMOVAL]
X, labels = look_alike(0)
size = X.std(axis=0)
X, removal, addition = X / size, np.array(removal) / size, np.array(addition) / size
clf = MLPClassifier(hidden_layer_sizes=(8,), random_state=0, max_iter=60).fit(X, labels)
undrinkable = np.flatnonzero((labels == 0) & (clf.predict(X) == 0))
w = X[rng.permutation(undrinkable)[:4]]
n, d = w.shape

scip = Model()
x = np.zeros((n, d), dtype=object)
y = np.zeros((n, 1), dtype=object)
added, removed = np.zeros((n, d), dtype=object), np.zeros((n, d), dtype=object)
for i in range(n):
    y[i, 0] = scip.addVar(vtype="B", name=f"potable_{i}")
    for j in range(d):
        x[i, j] = scip.addVar(lb=max(0, w[i, j] - removal[j]), ub=w[i, j] + addition[j], name=f"x_{i}_{j}")
        added[i, j] = scip.addVar(lb=0, ub=addition[j], name=f"added_{i}_{j}")
        removed[i, j] = scip.addVar(lb=0, ub=removal[j], name=f"removed_{i}_{j}")
        scip.addCons(x[i, j] == w[i, j] - removed[i, j] + added[i, j])
for j in range(d):
    scip.addCons(quicksum(added[i, j] for i in range(n)) <= addition[j])
    scip.addCons(quicksum(removed[i, j] for i in range(n)) <= removal[j])
pred_cons = add_predictor_constr(scip, clf, x, y, unique_naming_prefix="clf_", epsilon=1e-4)
scip.setObjective(n - quicksum(y[i, 0] for i in range(n)))
scip.setParam("limits/time", 60)
scip.hideOutput()

scip.optimize()

error = pred_cons.get_error(1e-4)
point, found = [scip.getVal(variable) for variable in x.ravel()], scip.getObjVal()
