"""Networks seen from one point: values, slopes and classes against differences and the predictors."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.linearised.networks import Networks
from dovetail.run.work import Stopwatch
from tests.small import linear_net, random_mlp


class Recurrent(nn.Module):
    """An LSTM over the features as a sequence."""

    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.lstm = nn.LSTM(1, 4, batch_first=True, dtype=torch.float64)
        self.end = nn.Linear(4, 2, dtype=torch.float64)

    def forward(self, x):
        return self.end(self.lstm(x.unsqueeze(2))[0][:, -1])


def smooth(features, outputs=1, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(features, 6, dtype=torch.float64), nn.GELU(), nn.Linear(6, outputs, dtype=torch.float64)
    )


def over(columns, *, integer=False, lower=-2.0, upper=2.0):
    return dt.Problem(dt.Mip(cost=np.zeros(columns), lower=lower, upper=upper, integer=integer))


def networks_of(problem):
    return Networks(problem, Stopwatch())


def relu():
    problem = over(8)
    problem.add_predictor(random_mlp(3, 2, seed=1), [[0, 1, 2], [2, 3, 0]], [[4, 5], [6, 7]])
    return problem


def gelu_of_two_samples():
    problem = over(7)
    problem.add_predictor(smooth(2, 2), [[0, 1], [2, 1]], [[3, 4], [5, 6]])
    return problem


def lstm():
    problem = over(5)
    problem.add_predictor(Recurrent(), [0, 1, 2], [3, 4])
    return problem


def one_column_twice():
    problem = over(5)
    problem.add_predictor(smooth(3), [[0, 1, 0], [1, 1, 1]], [[2], [3]])
    problem.add_predictor(random_mlp(2, seed=3), [0, 0], [4])
    return problem


def a_probability():
    problem = over(4)
    net = nn.Sequential(smooth(2), nn.Sigmoid())
    problem.add_predictor(net, [[0, 1], [1, 0]], [[2], [3]], output_type="classification")
    assert problem.blocks[0].threshold == 0.5
    return problem


def a_threshold():
    problem = over(3)
    problem.add_predictor(smooth(2), [0, 1], [2], output_type="classification", threshold=-0.15)
    return problem


def three_classes():
    problem = over(5)
    problem.add_predictor(smooth(2, 3), [0, 1], [2, 3, 4], output_type="classification")
    return problem


def two_blocks():
    problem = over(8)
    problem.add_predictor(random_mlp(3, 2, seed=1), [0, 1, 2], [4, 5])
    problem.add_predictor(smooth(1), [[3], [0]], [[7], [6]])
    return problem


KINDS = (
    relu,
    gelu_of_two_samples,
    lstm,
    one_column_twice,
    a_probability,
    a_threshold,
    three_classes,
    two_blocks,
)


def truth(problem, z):
    """(m,) what decides about every output, from the predictors themselves."""
    parts = []
    for block in problem.blocks:
        raw = block.predictor.predict(z[block.inputs])
        if block.classifies and raw.shape[1] == 1:
            t = block.threshold
            raw = (
                np.log(raw / (1 - raw)) - np.log(t / (1 - t))
                if block.description.ends_in_sigmoid
                else raw - t
            )
        parts.append(raw.ravel())
    return np.concatenate(parts)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_values_and_slopes_are_those_of_the_networks(kind):
    problem = kind()
    networks = networks_of(problem)
    rng = np.random.default_rng(0)
    assert networks.count == sum(block.outputs.size for block in problem.blocks)
    assert networks.outputs.tolist() == [j for b in problem.blocks for j in b.outputs.ravel()]
    for _ in range(5):
        z = rng.uniform(-2, 2, problem.mip.n_columns)
        model = networks.linearise(z)
        assert model.values == pytest.approx(truth(problem, z), abs=1e-9)
        assert networks.values(z)[0] == pytest.approx(model.values, abs=1e-12)
        J = networks.jacobian(model).toarray()
        assert model.offset + J @ z == pytest.approx(model.values, abs=1e-9)
        h = 1e-6
        for j in range(problem.mip.n_columns):
            up, down = z.copy(), z.copy()
            up[j] += h
            down[j] -= h
            difference = (truth(problem, up) - truth(problem, down)) / (2 * h)
            assert J[:, j] == pytest.approx(difference, abs=1e-6)


def test_values_of_many_points_are_those_of_each():
    problem = two_blocks()
    networks = networks_of(problem)
    Z = np.random.default_rng(1).uniform(-2, 2, (7, problem.mip.n_columns))
    assert networks.values(Z) == pytest.approx(np.array([truth(problem, z) for z in Z]), abs=1e-9)


def test_long_batches_are_cut_into_chunks(monkeypatch):
    from dovetail.linearised import networks as module

    problem = relu()
    networks = networks_of(problem)
    Z = np.random.default_rng(1).uniform(-2, 2, (9, problem.mip.n_columns))
    whole = networks.values(Z)
    monkeypatch.setattr(module, "CHUNK", 4)
    assert networks.values(Z) == pytest.approx(whole, abs=1e-12)


def test_a_network_that_ignores_its_inputs_has_no_slope():
    class Constant(nn.Module):
        def forward(self, x):
            return torch.full((len(x), 1), 3.0, dtype=torch.float64)

    problem = over(2)
    problem.add_predictor(Constant(), [0], [1])
    model = networks_of(problem).linearise(np.array([0.5, 0.0]))
    assert model.values.tolist() == [3.0]
    assert model.slopes.tolist() == [0.0]
    assert model.offset.tolist() == [3.0]


def test_a_plain_function_has_slopes_by_differences():
    problem = over(3)
    problem.add_predictor(lambda X: X[:, :1] ** 2 + X[:, 1:], [0, 1], [2])
    model = networks_of(problem).linearise(np.array([0.5, 1.0, 0.0]))
    assert model.values == pytest.approx([1.25])
    assert model.slopes == pytest.approx([1.0, 1.0], abs=1e-4)


# --- classes and chains --------------------------------------------------------------------------------


def chained():
    """Regression -> class -> regression, and three classes beside them, over columns 0 to 2."""
    problem = over(9)
    problem.add_predictor(random_mlp(2, seed=7), [[4, 0], [4, 1]], [[5], [8]], name="last")
    problem.add_predictor(random_mlp(2, seed=5), [0, 1], [3], name="first")
    problem.add_predictor(random_mlp(2, seed=2), [3, 2], [4], output_type="classification", name="middle")
    return problem


def chained_classes():
    problem = over(8)
    problem.add_predictor(random_mlp(2, 3, seed=5), [0, 1], [2, 3, 4], output_type="classification")
    problem.add_predictor(random_mlp(3, seed=6), [2, 3, 0], [5], output_type="classification", threshold=0.1)
    problem.add_predictor(random_mlp(2, seed=7), [5, 1], [6])
    return problem


@pytest.mark.parametrize("kind", [*KINDS, chained, chained_classes], ids=lambda kind: kind.__name__)
def test_settled_points_are_what_the_problem_predicts(kind):
    problem = kind()
    networks = networks_of(problem)
    Z = np.random.default_rng(2).uniform(-2, 2, (20, problem.mip.n_columns))
    before = Z.copy()
    completed = networks.with_predictions(Z, networks.values(Z))
    assert np.array_equal(Z, before)
    for z, after in zip(Z, completed, strict=True):
        assert after == pytest.approx(problem.predict(z), abs=1e-9)


@pytest.mark.parametrize(
    "kind", [a_probability, a_threshold, three_classes, chained], ids=lambda k: k.__name__
)
def test_conditions_hold_exactly_where_the_class_is(kind):
    problem = kind()
    problem = problem.derived(problem.mip, tuple(replace(b, epsilon=0.0) for b in problem.blocks))
    networks = networks_of(problem)
    conditions = networks.conditions
    columns = networks.outputs[networks.classes]
    rng = np.random.default_rng(3)
    seen = set()
    for _ in range(60):
        z = problem.predict(rng.uniform(-2, 2, problem.mip.n_columns))
        values = networks.values(z)[0]
        met = conditions.form @ values >= conditions.margin
        assert np.all(met[conditions.active(z)])
        seen.add(tuple(z[columns]))
        for group in networks.class_groups:  # every other class breaks some condition it calls for
            others = [[1 - z[group[0]]]] if group.size == 1 else np.eye(group.size)
            for other in others:
                wrong = z.copy()
                wrong[group] = other
                if not np.array_equal(wrong, z):
                    assert not np.all(met[conditions.active(wrong)])
    assert len(seen) > 1


def test_conditions_carry_the_margin_of_their_block():
    problem = over(6)
    problem.add_predictor(smooth(2), [0, 1], [2], output_type="classification", epsilon=0.25)
    problem.add_predictor(smooth(2, 2), [0, 1], [3, 4], output_type="classification", epsilon=0.5)
    problem.add_predictor(smooth(2), [0, 1], [5])
    conditions = networks_of(problem).conditions
    assert conditions.count == 2 + 2
    assert conditions.column.tolist() == [2, 2, 3, 4]
    assert conditions.when.tolist() == [True, False, True, True]
    assert conditions.margin.tolist() == [0.25, 0.25, 0.5, 0.5]
    # the logit itself, its negative, and the lead of each class; the regression has no part in it
    assert conditions.form.toarray().tolist() == [
        [1, 0, 0, 0], [-1, 0, 0, 0], [0, 1, -1, 0], [0, -1, 1, 0],
    ]  # fmt: skip


def test_without_classes_there_are_no_conditions():
    conditions = networks_of(relu()).conditions
    assert conditions.count == 0
    assert conditions.form.shape == (0, 4)


# --- whole steps ---------------------------------------------------------------------------------------


def test_whole_slopes_along_binaries_are_what_a_flip_changes():
    problem = over(
        5, integer=[True, True, False, False, False], lower=[0, 0, -2, -9, -9], upper=[1, 1, 2, 9, 9]
    )
    problem.add_predictor(random_mlp(3, 2, seed=4), [0, 1, 2], [3, 4])
    networks = networks_of(problem)
    for a in (0.0, 1.0):
        for b in (0.0, 1.0):
            z = np.array([a, b, 0.3, 0.0, 0.0])
            model = networks.linearise(z, secants=True)
            J = networks.jacobian(model).toarray()
            for j in (0, 1):
                off, on = z.copy(), z.copy()
                off[j], on[j] = 0.0, 1.0
                assert J[:, j] == pytest.approx(truth(problem, on) - truth(problem, off), abs=1e-9)
            assert J[:, 2] == pytest.approx(
                networks.jacobian(networks.linearise(z)).toarray()[:, 2], abs=1e-12
            )
            assert model.offset + J @ z == pytest.approx(model.values, abs=1e-9)


def test_whole_slopes_along_integers_reach_a_neighbour_within_the_bounds():
    problem = over(3, integer=[True, True, False], lower=[0, 4, -9], upper=[3, 4, 9])
    problem.add_predictor(random_mlp(2, seed=4), [0, 1], [2])
    networks = networks_of(problem)
    for at, neighbour in ((0.0, 1.0), (1.0, 2.0), (3.0, 2.0)):
        z, there = np.array([at, 4.0, 0.0]), np.array([neighbour, 4.0, 0.0])
        model = networks.linearise(z, secants=True)
        slope = networks.jacobian(model).toarray()[0, 0]
        assert slope == pytest.approx(
            (truth(problem, there) - truth(problem, z))[0] / (neighbour - at), abs=1e-9
        )


def test_whole_slopes_along_a_binary_that_is_read_twice():
    problem = over(3, integer=[True, False, False], lower=[0, -2, -9], upper=[1, 2, 9])
    problem.add_predictor(random_mlp(3, seed=4), [0, 1, 0], [2])
    networks = networks_of(problem)
    off, on = np.array([0.0, 0.3, 0.0]), np.array([1.0, 0.3, 0.0])
    flip = (truth(problem, on) - truth(problem, off))[0]
    for z in (off, on):
        model = networks.linearise(z, secants=True)
        assert networks.jacobian(model).toarray()[0, 0] == pytest.approx(flip, abs=1e-9)


def test_the_pattern_names_every_entry_once():
    networks = networks_of(one_column_twice())
    assert networks.inputs.tolist() == [0, 1]
    assert list(zip(networks.rows.tolist(), networks.columns.tolist(), strict=True)) == [
        (0, 0), (0, 1), (1, 1), (2, 0),
    ]  # fmt: skip
    assert networks.first_entry.tolist() == [0, 2, 3, 4]


def test_slopes_too_small_for_an_engine_are_none():
    problem = over(3)
    problem.add_predictor(linear_net([1e-12, 2.0], 1.0), [0, 1], [2])
    model = networks_of(problem).linearise(np.array([2.0, 1.0, 0.0]))
    assert model.slopes.tolist() == [0.0, 2.0]
    assert model.offset + 2.0 == pytest.approx(model.values, abs=1e-15)
