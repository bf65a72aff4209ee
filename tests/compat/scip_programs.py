"""Programs as users of PySCIPOpt-ML write them; `ml` is the peer or dovetail in its place, `run` solves."""

import numpy as np
from pyscipopt import Model, quicksum

from tests.compat import trained

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def decisions(n=2):
    """A model with (n, 3) features, the last of which is a fact."""
    scip = Model()
    scip.hideOutput()
    lower, upper = trained.limits(n)
    x = np.zeros((n, 3), dtype=object)
    for i, j in np.ndindex(n, 3):
        x[i, j] = scip.addVar(f"x_{i}_{j}", lb=lower[i, j], ub=upper[i, j])
    return scip, x


def ended(scip, pred_cons):
    """What these programs do at their ends."""
    assert pred_cons.input_values.shape == pred_cons.input.shape
    assert all(np.isfinite(scip.getVal(v)) for v in scip.getVars())
    return scip.getObjVal(), float(np.max(pred_cons.get_error(1e-2)))


def gain(ml, run, add, predictor, n=2, binary=False, **options):
    """Most gain (or most samples of the better class) for little effort."""
    scip, x = decisions(n)
    y = scip.addMatrixVar((n, 1), vtype="B" if binary else "C", lb=0 if binary else None, name="y")
    scip.addCons(quicksum(x[i, 1] for i in range(n)) <= 0.5 * n)
    pred_cons = add(scip, predictor, x, y, unique_naming_prefix="p_", **options)
    pred_cons.print_stats()
    scip.setObjective(quicksum(y[i, 0] - 0.3 * x[i, 1] - 0.1 * x[i, 0] for i in range(n)), "maximize")
    run(scip)
    return ended(scip, pred_cons)


@program
def linear_regression(ml, run):
    return gain(ml, run, ml.sklearn.add_linear_regression_constr, trained.fitted("ElasticNet", alpha=0.01))


@program
def mlp_regressor(ml, run):
    return gain(ml, run, ml.sklearn.add_mlp_regressor_constr, trained.mlp("MLPRegressor"), formulation="bigm")


@program
def mlp_classifier(ml, run):
    clf = trained.mlp("MLPClassifier")
    return gain(ml, run, ml.sklearn.add_mlp_classifier_constr, clf, binary=True)


@program
def logistic_regression(ml, run):
    clf = trained.fitted("LogisticRegression", C=10.0)
    return gain(ml, run, ml.add_predictor_constr, clf, n=3, binary=True)


@program
def decision_tree_classifier(ml, run):
    tree = trained.fitted("DecisionTreeClassifier", max_depth=3, random_state=0)
    return gain(ml, run, ml.sklearn.add_decision_tree_classifier_constr, tree, binary=True, epsilon=1e-5)


@program
def gradient_boosting(ml, run):
    trees = trained.fitted("GradientBoostingRegressor", n_estimators=4, max_depth=2, random_state=0)
    return gain(ml, run, ml.sklearn.add_gradient_boosting_regressor_constr, trees, n=1, epsilon=1e-5)


@program
def torch_sequential(ml, run):
    return gain(ml, run, ml.torch.add_sequential_constr, trained.network())


@program
def torch_classes(ml, run):
    return gain(
        ml, run, ml.torch.add_sequential_constr, trained.network(), binary=True, output_type="classification"
    )


@program
def lists_and_made_outputs(ml, run):
    scip, x = decisions(1)
    pred_cons = ml.add_predictor_constr(scip, trained.network(2), [*x[0]])
    scip.setObjective(pred_cons.output[0, 0] - pred_cons.output[0][1], "maximize")
    run(scip)
    assert pred_cons.output.shape == (1, 2) and scip.getVal(pred_cons.output).shape == (1, 2)
    return ended(scip, pred_cons)


@program
def indicators(ml, run):
    """A sample may be left out: then its effort is nothing."""
    scip, x = decisions(2)
    used = [scip.addVar(f"used_{i}", vtype="B") for i in range(2)]
    pred_cons = ml.add_predictor_constr(scip, trained.mlp("MLPRegressor"), x)
    for i in range(2):
        scip.addConsIndicator(x[i, 1] <= 0.0, used[i], activeone=False)
        scip.addConsIndicator(-x[i, 0] <= -0.4, used[i])
    scip.addCons(quicksum(used) <= 1)
    scip.setObjective(quicksum(pred_cons.output[i, 0] for i in range(2)) - 0.1 * quicksum(used), "maximize")
    run(scip)
    return ended(scip, pred_cons)
