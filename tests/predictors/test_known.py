"""What a predictor is known to be: layers only of objects that compute just them, in known arithmetic."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import dovetail as dt
from dovetail.core.description import Description
from dovetail.core.layers import evaluate
from dovetail.core.predictor import as_predictor
from dovetail.core.rounding import FLOAT32, FLOAT64, FORMATS
from tests.small import random_mlp

X = np.random.default_rng(0).normal(size=(40, 3))


def known(foreign):
    """How it computes, as far as a bound may rest on it."""
    return as_predictor(foreign).describe(X).computation_if_known()


class TestTorch:
    def test_plain_modules_are_known(self):
        class Named(nn.Sequential):
            """A class that only builds."""

            def __init__(self):
                super().__init__(nn.Linear(3, 4), nn.ReLU(inplace=True))

        shared = nn.ReLU()
        once = nn.Linear(4, 4)
        net = nn.Sequential(Named(), nn.Dropout(), once, shared, once, shared, nn.Linear(4, 2, bias=False))
        computation = as_predictor(net).computation()
        assert computation.arithmetic is FLOAT32
        assert [getattr(layer, "kind", "dense") for layer in computation.layers] == ["dense", "relu"] * 3 + [
            "dense"
        ]
        with torch.no_grad():
            truth = net.double().eval()(torch.tensor(X)).numpy()
        assert evaluate(computation.layers, X) == pytest.approx(truth, abs=1e-12)

    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
    def test_the_arithmetic_is_that_of_the_dtype(self, dtype):
        computation = known(nn.Linear(3, 1, dtype=dtype))
        assert computation.arithmetic is FORMATS[str(dtype).removeprefix("torch.")]

    @pytest.mark.parametrize(
        "module",
        [
            nn.Softplus(beta=2.0),
            nn.Softplus(threshold=5.0),
            nn.Softmax(dim=0),
            nn.GELU(),
            nn.BatchNorm1d(3),
            nn.utils.parametrizations.weight_norm(nn.Linear(3, 3)),
            nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3)),
            nn.utils.spectral_norm(nn.Linear(3, 3)),
            torch.jit.trace(nn.Linear(3, 3), torch.zeros(1, 3)),
            nn.LazyLinear(2, bias=False),
        ],
        ids=lambda module: type(module).__name__,
    )
    def test_other_modules_are_not(self, module):
        with torch.no_grad():
            module.eval()(torch.zeros(1, 3))
        predictor = as_predictor(nn.Sequential(module))
        if type(module) is nn.Linear:  # a lazy one has become one
            assert known(predictor) is not None or module._forward_pre_hooks
            return
        assert known(predictor) is None
        with pytest.raises(dt.UnsupportedError, match="cannot be written out"):
            predictor.layers()

    def test_a_function_of_torch_that_was_replaced_shows_in_the_graph(self, monkeypatch):
        predictor = as_predictor(nn.Sequential(nn.Linear(3, 2), nn.ReLU()))
        assert known(predictor) is not None
        plain = nn.functional.relu
        monkeypatch.setattr(nn.functional, "relu", lambda x, inplace=False: plain(x) + 1.0)
        with pytest.raises(dt.UnsupportedError, match="does not carry out"):
            predictor.layers()

    def test_weights_that_are_no_plain_tensors_are_not_known(self):
        class Odd(nn.Parameter):
            pass

        net = nn.Linear(3, 1)
        net.weight = Odd(net.weight.detach())
        assert known(net) is None

    def test_nothing_is_claimed_where_products_may_be_coarser(self):
        net = as_predictor(nn.Linear(3, 1)).describe(X)
        exact = as_predictor(nn.Linear(3, 1, dtype=torch.float64)).describe(X)
        with torch.autocast("cpu"):
            assert net.computation_if_known() is None
        torch.set_float32_matmul_precision("high")
        try:
            assert net.computation_if_known() is None
            assert exact.computation_if_known().arithmetic is FLOAT64
        finally:
            torch.set_float32_matmul_precision("highest")
        assert net.computation_if_known().arithmetic is FLOAT32


def trained(cls=MLPRegressor, **options):
    y = X[:, 0] > 0 if issubclass(cls, MLPClassifier) else X @ [1.0, 2.0, -1.0]
    return cls(hidden_layer_sizes=(4,), max_iter=5, random_state=0, **options).fit(X, y)


@pytest.mark.filterwarnings("ignore:.*converge")
class TestScikitLearn:
    def test_its_own_estimators_are_known(self):
        model = make_pipeline(StandardScaler(), trained())
        computation = known(make_pipeline(*[step for _, step in model.fit(X, X[:, 0]).steps]))
        assert computation.arithmetic is FLOAT64
        assert evaluate(computation.layers, X)[:, 0] == pytest.approx(model.predict(X), abs=1e-12)
        assert len(computation.layers) > len(as_predictor(model).layers())  # one operation after the other

    def test_a_subclass_is_not(self):
        class Clamped(MLPRegressor):
            def predict(self, X):
                return np.maximum(super().predict(X), -100.0)

        assert known(trained(Clamped)) is None
        inside = make_pipeline(StandardScaler().fit(X), trained(Clamped))
        with pytest.raises(dt.UnsupportedError, match="class of its own"):
            as_predictor(inside).layers()

    @pytest.mark.parametrize("where", ["instance", "class"])
    def test_one_with_a_method_replaced_is_not(self, where, monkeypatch):
        model = trained()
        predictor, plain = as_predictor(model), MLPRegressor.predict
        if where == "instance":
            model.predict = lambda X: np.maximum(plain(model, X), -100.0)
        else:
            monkeypatch.setattr(MLPRegressor, "predict", lambda self, X: np.maximum(plain(self, X), -100.0))
        with pytest.raises(dt.UnsupportedError, match="predict of MLPRegressor was replaced"):
            predictor.layers()
        assert known(predictor) is None

    def test_float32_weights_are_seen(self):
        model = MLPRegressor(hidden_layer_sizes=(4,), max_iter=5, random_state=0)
        model.fit(X.astype(np.float32), X[:, 0].astype(np.float32))
        assert known(model).arithmetic is FLOAT32
        assert known(LinearRegression().fit(X, X[:, 0])).arithmetic is FLOAT64


def test_a_predictor_of_ones_own_that_only_has_layers_proves_nothing():
    """Its layers may be used to look for points; how it computes them nobody said."""
    plain = as_predictor(random_mlp(2))

    class Own:
        predict, snapshot = plain.predict, plain.snapshot

        def describe(self, X):
            return Description("own", layers=plain.layers)

    problem = dt.Problem(dt.Mip(cost=[0.0, 0.0, 1.0], lower=[-1.0, -1.0, -np.inf], upper=[1.0, 1.0, np.inf]))
    problem.add_predictor(Own(), [0, 1], [2])
    result = dt.solve(problem, dt.Auto(effort=1), log=False)
    assert result.status == "feasible" and result.bound is None
    assert "no bound" in result.message
