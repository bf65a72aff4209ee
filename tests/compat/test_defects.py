"""What programs of the peers met: each of these was wrong once."""

import gurobipy as gp
import numpy as np
import pytest
from pyscipopt import Model
from sklearn.cluster import KMeans
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC

import dovetail as dt
from dovetail.compat import gurobi_ml, pyscipopt_ml
from tests.modelling.tiny import in_gurobi, solve


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).normal(size=(60, 3))
    return X, np.digitize(X[:, 0], [-0.5, 0.5])


def trained(data, classes):
    X, labels = data
    return MLPClassifier(hidden_layer_sizes=(4,), max_iter=30, random_state=0).fit(
        X, np.minimum(labels, classes - 1)
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("classes", [2, 3])
def test_logits_of_a_classifier_whose_last_activation_was_taken_away(data, classes):
    clf = trained(data, classes)
    probabilities = clf.predict_proba(data[0][:1])
    clf.out_activation_ = "identity"
    model, scip = in_gurobi(), Model()
    scip.hideOutput()
    row = data[0][:1].tolist()
    row[0][0] = model.addVar(lb=row[0][0], ub=row[0][0])
    constr = gurobi_ml.add_predictor_constr(model, clf, row)
    assert constr.output.shape == (1, 1 if classes == 2 else 3)
    same = gurobi_ml.sklearn.add_mlp_regressor_constr(model, clf, row)
    solve(model)
    logits = constr.output_values[0]
    assert np.allclose(same.output_values[0], logits)
    odds = np.exp(logits) / np.exp(logits).sum() if classes == 3 else 1 / (1 + np.exp(-logits))
    assert odds == pytest.approx(probabilities[0, -len(logits) :])
    x = [scip.addVar(lb=value, ub=value) for value in data[0][0]]
    classed = pyscipopt_ml.add_predictor_constr(scip, clf, [x])
    solve(scip)
    assert set(classed.output_values.ravel()) <= {0.0, 1.0}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_function_that_predicts_is_honoured_or_refused(data):
    model = in_gurobi()
    clf, x = trained(data, 2), data[0][:1]
    row = model.addMVar(x.shape, lb=x, ub=x)
    classes = dt.add_predictor_constr(model, clf, row, predict_function="predict")
    odds = dt.add_predictor_constr(model, clf, row, predict_function="predict_proba")
    by_name = pyscipopt_ml.sklearn.add_mlp_classifier_constr  # whose own default are classes
    same = by_name(model, clf, row, predict_function="predict_proba")
    solve(model)
    assert odds.output_values[0, 0] == pytest.approx(clf.predict_proba(x)[0, 1])
    assert same.output_values[0, 0] == pytest.approx(clf.predict_proba(x)[0, 1])
    assert classes.output_values[0, 0] == clf.predict(x)[0]
    with pytest.raises(dt.PredictorError, match=r"estimator\.decision_function"):
        dt.add_predictor_constr(model, clf, row, predict_function="decision_function")


def test_values_of_all_variables_beside_indicators():
    """SCIP has a slack for each indicator among its variables, gurobipy a way to ask what it has not."""
    scip, grb = Model(), in_gurobi()
    scip.hideOutput()
    x, b, y = scip.addVar("x", "I", ub=3), scip.addVar("b", "B"), scip.addVar("y", lb=None)
    scip.addConsIndicator(x <= 1, b)
    scip.addCons(b >= 1)
    scip.setObjective(y)
    dt.add_predictor_constr(scip, lambda X: (X - 2) ** 2, [x], [y])
    result = solve(scip)
    assert {v.name for v in scip.getVars()} == {"x", "b", "y", "indslack_c1"}
    assert result.value(scip.getVars()).tolist() == [scip.getVal(v) for v in scip.getVars()]
    z, w = grb.addVar(ub=3, vtype="I"), grb.addVar(lb=-9)
    grb.addGenConstrIndicator(grb.addVar(lb=1, vtype="B"), 1, z <= 1)
    grb.setObjective(w)
    dt.add_predictor_constr(grb, lambda X: (X - 2) ** 2, [z], [w])
    assert solve(grb).value(grb.getVars()).tolist() == [v.X for v in grb.getVars()] == [1.0, 1.0, 1.0]
    with pytest.raises((gp.GurobiError, AttributeError), match="no_such"):
        _ = z.no_such


def test_labels_of_several_outputs_and_two_clusters_as_pyscipopt_ml_means_them(data):
    """One column for each label, none of which excludes another; one for two clusters."""
    X, labels = data
    several = MultiOutputClassifier(LinearSVC()).fit(
        X, np.stack([labels > 0, labels > 1], axis=1).astype(int)
    )
    clusters = KMeans(2, n_init=1, random_state=0).fit(X)
    scip = Model()
    scip.hideOutput()
    x = np.array([[scip.addVar(lb=value, ub=value) for value in row] for row in X[:3]])
    both = pyscipopt_ml.add_predictor_constr(scip, several, x)
    one = pyscipopt_ml.add_predictor_constr(scip, clusters, x, scip.addMatrixVar((3, 1), vtype="B"))
    solve(scip)
    assert both.output_values == pytest.approx(several.predict(X[:3])) and both.predictor is several
    assert one.output_values[:, 0] == pytest.approx(clusters.predict(X[:3]))
