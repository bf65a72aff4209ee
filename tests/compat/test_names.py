"""Every public name of the peers is there, with the peer's own parameters.

The peers are installed for the tests: they are the judges here, module by module.
"""

import importlib
import inspect
import os

import lightgbm
import numpy as np
import pytest
import torch
from sklearn.neural_network import MLPClassifier

import dovetail as dt
from dovetail.compat import gurobi_ml, pyscipopt_ml
from tests.modelling.tiny import in_gurobi, solve, times

os.environ.setdefault("KERAS_BACKEND", "torch")

GUROBI = "add_predictor sklearn torch keras onnx xgboost lightgbm exceptions modeling register_user_predictor"
SCIP = "add_predictor sklearn torch onnx xgboost lightgbm exceptions modelling"  # keras wants tensorflow
INNER = {"get_convertor", "registered_predictors"}
"""Of the peers' own machinery."""


def parameters(function):
    every = inspect.signature(function).parameters.values()
    return [each.name for each in every if each.kind is not each.VAR_KEYWORD]


@pytest.mark.parametrize(
    ("peer", "module"),
    [("gurobi_ml", m) for m in GUROBI.split()] + [("pyscipopt_ml", m) for m in SCIP.split()],
)
def test_the_peers_names(peer, module):
    theirs = importlib.import_module(f"{peer}.{module}")
    ours = importlib.import_module(f"dovetail.compat.{peer}.{module}")
    for name, value in vars(theirs).items():
        own = f"{getattr(value, '__module__', '')}.".startswith(f"{theirs.__name__}.")
        if name.startswith("_") or not own or name in INNER or inspect.ismodule(value):
            continue
        assert hasattr(ours, name), name
        if name.startswith("add_") and name != "add_column_transformer_constr":  # which takes no outputs
            assert parameters(getattr(ours, name)) == parameters(value), name


def test_ways_to_write_relu_out_mean_relu():
    model = in_gurobi()
    x = model.addMVar((1, 2), lb=[[1.0, -3.0]], ub=[[1.0, -3.0]])
    net = torch.nn.Sequential(times(1.0, 1.0), torch.nn.ReLU())  # 0 where the softplus of -2 is 0.13
    options = {"relu_formulation": "soft", "soft_relu_beta": 1.0, "bigm": 10.0}
    made = gurobi_ml.add_predictor_constr(model, net, x, **options)
    solve(model)
    assert made.output.X[0, 0] == 0.0 and made.get_error().max() == 0.0
    with pytest.raises(dt.OptionError, match="relu_formulation must be one of mip, smooth, soft"):
        gurobi_ml.add_predictor_constr(model, net, x, relu_formulation="softer")


def test_a_booster_trained_for_classes_gives_the_sum_of_its_leaves():
    X = np.random.default_rng(0).normal(size=(60, 2))
    options = {"objective": "binary", "sigmoid": 0.7, "min_data_in_leaf": 5, "verbose": -1}
    booster = lightgbm.train(options, lightgbm.Dataset(X, X[:, 0] > X[:, 1]), 3)
    model = in_gurobi()
    x = model.addMVar((2, 2), lb=X[:2], ub=X[:2])
    made = gurobi_ml.lightgbm.add_lgbm_booster_constr(model, booster, x)
    solve(model)
    assert made.output.X[:, 0] == pytest.approx(booster.predict(X[:2], raw_score=True), abs=1e-9)
    assert made.predictor is booster and made.get_error().max() <= 1e-9


def test_modules_can_be_imported_as_the_peers_are():
    from dovetail.compat.gurobi_ml.exceptions import NoSolution
    from dovetail.compat.gurobi_ml.sklearn import add_mlp_regressor_constr
    from dovetail.compat.gurobi_ml.sklearn.mlpregressor import MLPRegressorConstr
    from dovetail.compat.pyscipopt_ml.sklearn.mlp import add_mlp_classifier_constr

    assert NoSolution is dt.DovetailError and issubclass(MLPRegressorConstr, dt.PredictorConstr)
    assert add_mlp_regressor_constr is gurobi_ml.sklearn.add_mlp_regressor_constr
    assert add_mlp_classifier_constr is pyscipopt_ml.sklearn_convertors()["MLPClassifier"]
    assert set(gurobi_ml.sklearn_transformers()) == {"StandardScaler", "PolynomialFeatures"}
    peers = pytest.importorskip("gurobi_ml.sklearn.predictors_list")
    assert set(gurobi_ml.sklearn_predictors()) == set(peers.sklearn_predictors())


def test_arguments_by_position_and_by_name():
    model = in_gurobi()
    x, y = model.addMVar((1, 2), ub=1.0), model.addMVar((1, 1))
    net = times(1.0, 2.0)
    one = gurobi_ml.torch.add_sequential_constr(model, net, x, y, name="n")
    two = gurobi_ml.torch.add_sequential_constr(
        gp_model=model, sequential_model=net, input_vars=x, name="n", verbose=True
    )
    assert (one.name, two.name) == ("n", "n0") and one.predictor is net and one.gp_model is model
    assert (
        type(one).__name__ == "SequentialConstr"
        and one.vars == []
        and len(two.vars) == 1
        and two.constrs == two.genconstrs == []
    )
    with pytest.raises(TypeError, match="missing a required argument: 'input_vars'"):
        gurobi_ml.torch.add_sequential_constr(model, net)
    with pytest.raises(TypeError, match="unexpected keyword argument 'verbse'"):
        gurobi_ml.add_predictor_constr(model, net, x, y, verbse=True)


def test_registered_functions_are_asked_first(capsys):
    class Weights:
        def __init__(self, *values):
            self.values = values

    class More(Weights):
        pass

    def add_weights(gp_model, predictor, input_vars, output_vars=None, **options):
        net = times(*predictor.values)
        return gurobi_ml.torch.add_sequential_constr(gp_model, net, input_vars, output_vars, **options)

    gurobi_ml.register_predictor_constr(Weights, add_weights)
    try:
        model = in_gurobi()
        x = model.addMVar(2, ub=1.0)
        constr = gurobi_ml.add_predictor_constr(model, More(1.0, -2.0), x)
        model.setObjective(constr.output.sum())
        solve(model)
        assert model.ObjVal == -2.0 and x.X.tolist() == [0.0, 1.0]
        constr.print_stats(abbrev=True)
        assert "PredictorConstr" in capsys.readouterr().out
        with pytest.raises(dt.OptionError, match="register one of the functions"):
            gurobi_ml.register_predictor_constr(Weights, type(constr))
    finally:
        gurobi_ml.register_user_predictor.user_predictors().clear()


def test_a_registered_function_adds_constraints_of_its_own():
    def add_slopes(gp_model, slopes, input_vars, output_vars=None, **options):
        return gp_model.addConstr(output_vars == input_vars @ np.array(slopes))

    class Slopes(list):
        pass

    gurobi_ml.register_predictor_constr(Slopes, add_slopes)
    try:
        model = in_gurobi()
        x, z = model.addMVar(2, ub=1.0), model.addMVar(1, lb=-9.0)
        y = model.addMVar(1, lb=-9.0)
        gurobi_ml.add_predictor_constr(model, Slopes([1.0, -2.0]), x, y[0])
        gurobi_ml.add_predictor_constr(model, times(1.0), y, z)
        model.setObjective(y.sum() + z.sum())
        solve(model)
        assert model.ObjVal == -4.0 and x.X.tolist() == [0.0, 1.0]
    finally:
        gurobi_ml.register_user_predictor.user_predictors().clear()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_functions_registered_by_the_name_of_a_class():
    """As the peer's own tests do: logits of a classifier, asked for as probabilities."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    clf = MLPClassifier(hidden_layer_sizes=(3,), max_iter=20).fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    clf.out_activation_ = "identity"
    gurobi_ml.register_predictor_constr("MLPClassifier", gurobi_ml.sklearn.add_mlp_regressor_constr)
    try:
        model = in_gurobi()
        x = model.addMVar((1, 2), lb=0.5, ub=0.5)
        constr = gurobi_ml.add_predictor_constr(model, clf, x, output_type="probability")
        solve(model)
        assert np.allclose(constr.output.X, clf.predict_proba([[0.5, 0.5]]))
    finally:
        gurobi_ml.register_user_predictor.user_predictors().clear()
