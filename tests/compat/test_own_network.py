"""Networks of gurobi-machinelearning's `BaseNNConstr`: rows that their owner puts together layer by layer."""

import gurobipy as gp
import numpy as np
import pytest
from dovetail.compat.gurobi_ml.modeling.neuralnet import BaseNNConstr
from dovetail.compat.gurobi_ml.modeling.neuralnet.activations import SoftPlus

import dovetail as dt
from dovetail.compat import gurobi_ml
from tests.modelling.tiny import in_gurobi, solve

SIZES = {
    "coefs": [np.array([[1.0, -1.0]]), np.array([[1.0], [1.0]])],
    "intercepts": [np.zeros(2), np.zeros(1)],
}
"""|x| = max(x, 0) + max(-x, 0)."""


class SizeConstr(BaseNNConstr):
    """A dense layer with ReLU and one without, or the same with an activation layer between two."""

    def _mip_model(self, apart=False, **options):
        relu, identity = self.act_dict["relu"], self.act_dict["identity"]
        (first, second), (before, behind) = self.predictor["coefs"], self.predictor["intercepts"]
        if apart:
            sums = self.add_dense_layer(self._input, first, before, identity)
            hidden = self.add_activation_layer(sums.output, relu, name="relu")
        else:
            hidden = self.add_dense_layer(self._input, first, before, relu)
        self._output = self._add_dense_layer(hidden._output, second, behind, identity, self._output).output

    def get_error(self, eps=None):
        if not self._has_solution:
            raise dt.ModelError("no solution")
        return np.abs(np.abs(self.input_values) - self.output_values)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("given", [False, True])
def test_layers_are_rows(given, apart, capsys):
    """The distance of x from 2, least where x is as near as its bounds allow."""
    model = in_gurobi()
    x, y = model.addMVar((2, 1), lb=[[-1.0], [3.0]], ub=[[2.5], [4.0]]), model.addMVar((2, 1), ub=9.0)
    away = model.addMVar((2, 1), lb=-4.0, ub=4.0)
    model.addConstr(away == x - 2.0)
    own = SizeConstr(model, SIZES, away, y if given else None, apart=apart)
    with pytest.raises(dt.ModelError, match="no solution"):
        own.get_error()
    with pytest.raises(dt.ModelError, match=r"has no value: call dovetail\.solve"):
        own.input_values  # noqa: B018
    model.setObjective(own.output.sum())
    result = solve(model)
    assert result.status == "optimal" and model.ObjVal == pytest.approx(1.0) and own.get_error().max() <= 1e-6
    assert x.X.ravel() == pytest.approx([2.0, 3.0]) and len(own.layers) == 2 + apart and own[-1] in [*own]
    assert model.NumGenConstrs == len(own.genconstrs) == 4
    own.print_stats()
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(own.layers)
    own.remove()
    assert (model.NumVars, model.NumGenConstrs) == (6, 0)


def test_inputs_without_an_end_limit_nothing():
    """The sums of a layer have the bounds that its inputs give them: 0 times an endless one is 0."""
    model = in_gurobi()
    x = model.addMVar((1, 2), lb=[[-gp.GRB.INFINITY, -1.0]], ub=[[5.0, 2.0]])
    coefs = np.array([[0.0, 1.0], [-3.0, 1.0]])

    class Constr(BaseNNConstr):
        def _mip_model(self, **options):
            self.made = self.add_dense_layer(self._input, coefs, np.array([1.0, 0.0]), self.act_dict["relu"])
            self._output = self.made.output

        def get_error(self, eps=None): ...

    sums = Constr(model, None, x).made.mixing
    model.update()
    assert sums.LB.tolist() == [[-5.0, -np.inf]] and sums.UB.tolist() == [[4.0, 7.0]]


def test_what_is_not_written_is_said():
    model = in_gurobi()
    x = model.addMVar((1, 1), ub=1.0)
    with pytest.raises(dt.UnsupportedError, match="Softplus layers"):
        SizeConstr(model, SIZES, x, activation_models={"relu": SoftPlus(beta=2.0)})
    with pytest.raises(dt.UnsupportedError, match="its get_error"):
        SizeConstr(model, SIZES, x)[0].get_error()

    class NothingConstr(SizeConstr):
        def _mip_model(self, **options): ...

    with pytest.raises(dt.PredictorError, match=r"has not set self\._output"):
        NothingConstr(model, SIZES, x)


def test_a_big_m_needs_bounds():
    """As the peer says of who asks for one: an input without bounds was mostly forgotten."""
    model = in_gurobi()
    x = model.addVar(lb=-1.0, name="free")
    with pytest.raises(ValueError, match=r"free goes from -1 to .*give them, or bigm="):
        gurobi_ml.add_predictor_constr(model, lambda X: X**2, [[x]], formulation="bigm")
    gurobi_ml.add_predictor_constr(model, lambda X: X**2, [[x]], formulation="bigm", bigm=100.0)
    x.UB = 2.0
    gurobi_ml.add_predictor_constr(model, lambda X: X**2, [[x]], formulation="bigm")
