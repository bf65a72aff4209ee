"""`add_predictor_constr` and `solve` on models of every tool: what its users rely on."""

import gc
import logging
import weakref

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LinearRegression
from torch import nn

import dovetail as dt
from tests.modelling.tiny import in_gurobi
from tests.tools import TOOLS, Linopy, numbers


def network(inputs=2, outputs=1, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(inputs, 8, dtype=torch.float64), nn.ReLU(), nn.Linear(8, outputs, dtype=torch.float64)
    )


def said(net, X):
    with torch.no_grad():
        return net(torch.as_tensor(np.asarray(X, dtype=np.float64))).numpy()


def least_of(net, features, low=-2, high=2):
    """The least value over the integers low..high in each feature that is None; others are numbers."""
    axes = [range(low, high + 1) if feature is None else [feature] for feature in features]
    grid = np.array(np.meshgrid(*axes, indexing="ij"), dtype=np.float64).reshape(len(axes), -1).T
    return said(net, grid).min()


@pytest.fixture(params=TOOLS, ids=str)
def kit(request):
    return request.param


def solve(model, **options):
    return dt.solve(model, dt.Auto(effort=1), log=False, **options)


def small(kit, net=None, **options):
    """Two integers through a network, its output the objective."""
    net = net or network()
    model = kit.new()
    x = kit.variables(model, (1, 2), -2, 2, integer=True)
    y = kit.variables(model, (1, 1), -np.inf, np.inf)
    constr = dt.add_predictor_constr(model, net, x, y, **options)
    kit.minimise(model, [(1.0, kit.at(y, (0, 0)))])
    return model, x, y, net, constr


def test_the_enumerated_optimum(kit):
    model, x, y, net, constr = small(kit)
    result = solve(model)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(least_of(net, [None, None]), rel=1e-6)
    assert np.allclose(said(net, numbers(result.value(x))), numbers(result.value(y)))
    assert result.value(kit.at(x, (0, 1))) == numbers(result.value(x))[0, 1]
    assert isinstance(result.value(kit.at(y, (0, 0))), float)
    assert constr.get_error() == pytest.approx(0.0, abs=1e-9)


def test_the_model_is_not_changed_and_twice_is_the_same(kit, tmp_path):
    model, x, *_ = small(kit)
    before = kit.text(model, tmp_path)
    first, second = solve(model), solve(model)
    assert kit.text(model, tmp_path) == before
    assert first.objective == second.objective
    assert np.array_equal(numbers(first.value(x)), numbers(second.value(x)))


def test_outputs_are_made_when_omitted(kit):
    net = network(outputs=2)
    model = kit.new()
    x = kit.variables(model, (3, 2), -2, 2, integer=True)
    constr = dt.add_predictor_constr(model, net, x, name="net")
    kit.minimise(model, [(1.0, kit.at(constr.output, (i, o))) for i in range(3) for o in range(2)])
    result = solve(model)
    assert numbers(result.value(constr.output)).shape == (3, 2)
    grid = np.array(np.meshgrid(range(-2, 3), range(-2, 3))).reshape(2, -1).T
    assert result.objective == pytest.approx(3 * said(net, grid).sum(axis=1).min())
    assert np.array_equal(constr.output_values, said(net, constr.input_values))
    assert solve(model).objective == result.objective  # they stay


def test_a_row_and_a_bound_changed_between_solves_are_seen(kit):
    model, x, _, net, _ = small(kit)
    first = solve(model)
    best = numbers(first.value(x))[0]
    kit.set_upper(model, kit.at(x, (0, 0)), best[0] - 1 if best[0] > -2 else -2)
    kit.set_upper(model, kit.at(x, (0, 1)), 1)
    low = best[0] - 1 if best[0] > -2 else -2
    grid = [[a, b] for a in range(-2, int(low) + 1) for b in range(-2, 2)]
    second = solve(model, start=first)
    assert second.objective == pytest.approx(said(net, grid).min())
    kit.at_most(model, [(1.0, kit.at(x, (0, 0))), (1.0, kit.at(x, (0, 1)))], -2.0)
    third = solve(model, start=second)
    assert third.objective == pytest.approx(said(net, [p for p in grid if sum(p) <= -2]).min())


def test_a_new_variable_between_solves_is_no_obstacle_to_a_start(kit):
    model, _, y, _, _ = small(kit)
    first = solve(model)
    more = kit.variables(model, (1, 1), 1, 3)
    kit.minimise(model, [(1.0, kit.at(y, (0, 0))), (1.0, kit.at(more, (0, 0)))])
    second = solve(model, start=first)
    assert second.objective == pytest.approx(first.objective + 1.0)
    assert numbers(second.value(more)) == pytest.approx(1.0)


def test_numbers_beside_variables_and_changed_later(kit):
    net = network(3)
    model = kit.new()
    x = kit.variables(model, (2, 1), -2, 2, integer=True)
    y = kit.variables(model, (2, 1), -np.inf, np.inf)
    features = [[0.5, kit.at(x, (0, 0)), -1], [kit.at(x, (1, 0)), np.float32(0.25), 2]]
    constr = dt.add_predictor_constr(model, net, features, y)
    kit.minimise(model, [(1.0, kit.at(y, (i, 0))) for i in range(2)])
    expected = least_of(net, [0.5, None, -1]) + least_of(net, [None, 0.25, 2])
    assert solve(model).objective == pytest.approx(expected)
    assert constr.input_values[0, 0] == 0.5 and constr.input_values[1, 2] == 2.0
    if not isinstance(kit, Linopy):
        features[0][0] = -0.75
        expected = least_of(net, [-0.75, None, -1]) + least_of(net, [None, 0.25, 2])
        assert solve(model).objective == pytest.approx(expected)


def test_a_frame_of_facts_and_decisions(kit):
    net = network(3)
    model = kit.new()
    x = kit.variables(model, (2, 1), -2, 2, integer=True)
    frame = pd.DataFrame({"a": [0.1, 0.2], "b": [1, 2]})
    frame["c"] = [kit.at(x, (i, 0)) for i in range(2)]
    constr = dt.add_predictor_constr(model, net, frame)
    kit.minimise(model, [(1.0, kit.at(constr.output, (i, 0))) for i in range(2)])
    expected = least_of(net, [0.1, 1, None]) + least_of(net, [0.2, 2, None])
    assert solve(model).objective == pytest.approx(expected)


def test_a_chain_of_predictors(kit):
    """x -> a -> b, and the second network reads x too."""
    first, second = network(1, seed=1), network(2, seed=2)
    model = kit.new()
    x = kit.variables(model, (1, 1), -2, 2, integer=True)
    a, b = (kit.variables(model, (1, 1), -np.inf, np.inf) for _ in range(2))
    dt.add_predictor_constr(model, first, x, a, name="first")
    dt.add_predictor_constr(model, second, [[kit.at(a, (0, 0)), kit.at(x, (0, 0))]], b, name="second")
    kit.minimise(model, [(1.0, kit.at(b, (0, 0)))])
    truth = min(said(second, [[said(first, [[v]])[0, 0], v]])[0, 0] for v in range(-2, 3))
    assert solve(model).objective == pytest.approx(truth)
    with pytest.raises(dt.PredictorError, match="cycle"):
        dt.add_predictor_constr(model, network(1), b, x, name="back")
    with pytest.raises(dt.PredictorError, match="output of"):
        dt.add_predictor_constr(model, network(1), x, b, name="again")


def test_classes(kit):
    net = network(2, outputs=3)
    model = kit.new()
    x = kit.variables(model, (1, 2), -2, 2, integer=True)
    constr = dt.add_predictor_constr(model, net, x, output_type="classification")
    wanted = int(np.argmin(np.bincount(np.argmax(said(net, _grid()), axis=1), minlength=3) == 0))
    kit.minimise(model, [(-1.0, kit.at(constr.output, (0, wanted)))])
    result = solve(model)
    assert result.objective == -1.0
    assert np.array_equal(constr.output_values, np.eye(3)[[wanted]])
    assert np.argmax(said(net, numbers(result.value(x)))) == wanted


def _grid():
    return np.array(np.meshgrid(range(-2, 3), range(-2, 3))).reshape(2, -1).T


def test_remove_unties(kit):
    model, x, y, net, constr = small(kit)
    kit.at_most(model, [(-1.0, kit.at(y, (0, 0)))], 50.0)
    constr.remove()
    assert solve(model).objective == pytest.approx(-50.0)
    with pytest.raises(dt.PredictorError, match="removed before"):
        constr.remove()
    again = dt.add_predictor_constr(model, net, x, y)
    assert solve(model).objective == pytest.approx(least_of(net, [None, None]))
    assert again.output_values.shape == (1, 1)


def test_what_was_made_is_removed_too(kit, tmp_path):
    model = kit.new()
    x = kit.variables(model, (1, 2), -2, 2, integer=True)
    kit.minimise(model, [(1.0, kit.at(x, (0, 0)))])
    before = kit.text(model, tmp_path)
    constr = dt.add_predictor_constr(model, network(), x)
    constr.remove()
    assert kit.text(model, tmp_path) == before


class TestRefused:
    """Typed errors; the model stays as it was."""

    def assert_refused(self, kit, tmp_path, match, error=dt.DovetailError, **options):
        model = kit.new()
        x = kit.variables(model, (2, 2), -2, 2)
        y = kit.variables(model, (2, 1), -5, 5)
        kit.minimise(model, [(1.0, kit.at(y, (0, 0)))])
        arguments = {"predictor": network(), "input_vars": x, "output_vars": y} | {
            key: value(model, x, y) if callable(value) and key.endswith("_vars") else value
            for key, value in options.items()
        }
        before = kit.text(model, tmp_path)
        with pytest.raises(error, match=match):
            dt.add_predictor_constr(model, **arguments)
        assert kit.text(model, tmp_path) == before
        assert solve(model).status == "optimal"

    def test_wrong_shapes(self, kit, tmp_path):
        one = lambda m, x, y: [[kit.at(y, (0, 0))]]  # noqa: E731
        self.assert_refused(kit, tmp_path, r"\(2, 2\).*\(1, 1\)", output_vars=one)
        self.assert_refused(kit, tmp_path, "2", predictor=network(3))
        self.assert_refused(kit, tmp_path, "2 outputs|outputs has 1", predictor=network(2, outputs=2))
        ragged = lambda m, x, y: [[kit.at(x, (0, 0))], [kit.at(x, (0, 0)), kit.at(x, (0, 1))]]  # noqa: E731
        self.assert_refused(kit, tmp_path, "different shapes", input_vars=ragged)

    def test_a_variable_of_another_model(self, kit, tmp_path):
        other = kit.new()
        strange = kit.variables(other, (2, 2), 0, 1)
        kit.minimise(other, [(1.0, kit.at(strange, (0, 0)))])
        self.assert_refused(
            kit, tmp_path, "not a variable of this|another model", input_vars=lambda m, x, y: strange
        )
        made_later = kit.variables(other, (40, 2), 0, 1)
        mixed = lambda m, x, y: [[kit.at(x, (0, 0)), kit.at(made_later, (i, 0))] for i in range(2)]  # noqa: E731
        self.assert_refused(kit, tmp_path, "not a variable of this|another model", input_vars=mixed)

    def test_a_removed_variable(self, kit):
        model = kit.new()
        x = kit.variables(model, (1, 2), -2, 2)
        gone = kit.variables(model, (1, 1), -2, 2)
        variable = kit.at(gone, (0, 0))
        kit.remove(model, variable)
        with pytest.raises(dt.ModelError, match="not a variable of this|removed"):
            dt.add_predictor_constr(model, network(), [[kit.at(x, (0, 0)), variable]])

    def test_a_variable_removed_between_solves(self, kit):
        model = kit.new()
        x, gone = kit.variables(model, (1, 1), -2, 2), kit.variables(model, (1, 1), -2, 2)
        variable = kit.at(gone, (0, 0))
        constr = dt.add_predictor_constr(model, network(), [[kit.at(x, (0, 0)), variable]])
        kit.minimise(model, [(1.0, kit.at(constr.output, (0, 0)))])
        assert solve(model).status == "optimal"
        kit.remove(model, variable)
        with pytest.raises(dt.ModelError, match="not a variable of this|removed"):
            solve(model)

    def test_numbers_where_they_cannot_be(self, kit, tmp_path):
        self.assert_refused(
            kit, tmp_path, "finite", input_vars=lambda m, x, y: [[kit.at(x, (0, 0)), np.nan]] * 2
        )
        self.assert_refused(
            kit, tmp_path, "must be variables", output_vars=lambda m, x, y: [[kit.at(y, (0, 0))], [2.0]]
        )
        self.assert_refused(kit, tmp_path, "empty", input_vars=lambda m, x, y: [])

    def test_expressions_and_strangers(self, kit, tmp_path):
        twice = lambda m, x, y: [[2.0 * kit.at(x, (0, 0)), kit.at(x, (0, 1))], [1.0, 2.0]]  # noqa: E731
        self.assert_refused(kit, tmp_path, "variable", input_vars=twice)
        self.assert_refused(
            kit, tmp_path, "variable|column", input_vars=lambda m, x, y: [[object(), 1.0]] * 2
        )

    def test_unknown_predictors_and_keywords(self, kit, tmp_path):
        self.assert_refused(kit, tmp_path, "register_predictor", predictor=object())
        self.assert_refused(kit, tmp_path, "unexpected keyword", TypeError, colour="red")
        self.assert_refused(kit, tmp_path, "output_type", output_type="probabilities")

    def test_no_values_before_a_solve(self, kit):
        *_, constr = small(kit)
        with pytest.raises(dt.DovetailError, match="solve"):
            constr.get_error()


def test_peer_keywords_are_heard(kit, caplog):
    with caplog.at_level(logging.DEBUG, logger="dovetail"):
        *_, constr = small(kit, unique_naming_prefix="wine_", formulation="bigm", verbose=True)
    assert constr.name == "wine"
    assert "formulation" in caplog.text


def test_training_data(kit):
    net = network(2)
    data = np.array([[-1.0, -0.5], [1.0, 0.5]])
    model, x, _, _, _ = small(kit, net, data=data)
    result = solve(model)
    values = numbers(result.value(x))[0]
    beyond = {f"feature {k}" for k in range(2) if abs(values[k]) > data[1, k]}
    assert {where.feature for where in result.extrapolations} == beyond
    for where in result.extrapolations:
        assert where.amount == pytest.approx(abs(where.value) - where.upper)


def test_models_are_not_kept_alive(kit):
    model, x, y, _, constr = small(kit)
    result = solve(model)
    watched = weakref.ref(model)
    del model, x, y, constr, result
    gc.collect()
    assert watched() is None


def test_vectors_and_deeper_arrays(kit):
    """One sample as a vector, outputs of several samples as a vector, (n, 2, 2) inputs flattened."""
    net = network(4)
    model = kit.new()
    x = kit.variables(model, (2, 2, 2), -1, 1, integer=True)
    y = kit.variables(model, (2,), -np.inf, np.inf)
    constr = dt.add_predictor_constr(model, net, x, y)
    row = [kit.at(x, (0, 0, 0)), 1.0, kit.at(x, (0, 1, 0)), 0.0]
    single = dt.add_predictor_constr(model, net, row)
    kit.minimise(model, [(1.0, kit.at(y, i)) for i in range(2)] + [(1.0, kit.at(single.output, (0, 0)))])
    result = solve(model)
    assert constr.input_values.shape == (2, 4) and constr.output_values.shape == (2, 1)
    assert single.input_values.shape == (1, 4)
    assert np.allclose(said(net, numbers(result.value(x)).reshape(2, 4))[:, 0], numbers(result.value(y)))
    assert np.all(constr.get_error() < 1e-9)


def test_a_frame_in_another_order_than_the_training_data_is_refused():
    seen = pd.DataFrame({"a": np.arange(10.0), "b": np.arange(10.0)[::-1] ** 2})
    estimator = LinearRegression().fit(seen, seen.a + 100 * seen.b)
    model = in_gurobi()
    p, q = model.addVar(lb=1, ub=1), model.addVar(lb=2, ub=2)
    y = model.addVar(lb=-999)
    with pytest.raises(dt.PredictorError, match="columns b, a.*trained on a, b"):
        dt.add_predictor_constr(model, estimator, pd.DataFrame({"b": [q], "a": [p]}), [y])
    with pytest.raises(dt.PredictorError, match="data has the columns b, a"):
        dt.add_predictor_constr(model, estimator, [[p, q]], [y], data=seen[["b", "a"]])
    dt.add_predictor_constr(model, estimator, pd.DataFrame({"a": [p], "b": [q]}), [y], data=seen)
    assert solve(model).value(y) == pytest.approx(201.0)
