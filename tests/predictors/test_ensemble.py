"""Ensembles: mean, least, largest and vote of predictors of any kind."""

import itertools

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from torch import nn

import dovetail as dt
from dovetail.core.predictor import as_predictor
from dovetail.networks.layers import evaluate
from tests.conftest import FULL

X = np.random.default_rng(0).uniform(-1.0, 1.0, (40, 3))
ARRAY = {"mean": np.mean, "min": np.min, "max": np.max}


def nets(count=3, outputs=2, dtype=torch.float64):
    torch.manual_seed(0)
    make = lambda: nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, outputs)).to(dtype)  # noqa: E731
    return [make() for _ in range(count)]


def answers(members):
    return np.array([as_predictor(member).predict(X) for member in members])


@pytest.mark.parametrize("how", ["mean", "min", "max"])
class TestNetworks:
    def test_values_copies_and_bounds_are_of_the_members(self, how):
        members = nets()
        ensemble = dt.Ensemble(members, how)
        truth = ARRAY[how](answers(members), axis=0)
        assert np.allclose(ensemble.predict(X), truth, rtol=0, atol=1e-15)
        copy = ensemble.snapshot("cpu")
        assert np.allclose(copy(torch.tensor(X)).detach().numpy(), truth, rtol=0, atol=1e-14)
        known = ensemble.describe(X)
        assert np.allclose(known.program(3).values(X), truth, rtol=0, atol=1e-14)
        assert known.program(3).arithmetic is not None
        layers = known.layers_if_known()
        assert (layers is not None) == (how == "mean")
        if layers is not None:
            assert np.allclose(evaluate(layers, X), truth, rtol=0, atol=1e-14)
        assert not known.smooth

    def test_a_copy_stays_and_predict_follows(self, how):
        members = nets()
        ensemble = dt.Ensemble(members, how)
        copy, before = ensemble.snapshot("cpu"), ensemble.predict(X)
        for member in members:
            member[2].bias.data += 1.0
        assert np.allclose(copy(torch.tensor(X)).detach().numpy(), before, rtol=0, atol=1e-14)
        assert np.allclose(ensemble.predict(X), before + 1.0, rtol=0, atol=1e-14)


@pytest.mark.parametrize("how", ["mean", "min", "max"] if FULL else ["min"])
def test_the_optimum_is_the_enumerated_one(how):
    members = nets(outputs=1)
    mip = dt.Mip(
        cost=[0.1, 0.2, -0.1, 1.0],
        lower=[-2, -2, -2, -np.inf],
        upper=[2, 2, 2, np.inf],
        integer=[True, True, True, False],
        sense="max",
    )
    problem = dt.Problem(mip)
    problem.add_predictor(dt.Ensemble(members, how), [0, 1, 2], [3])
    result = dt.solve(problem, log=False)
    grid = np.array([*itertools.product(range(-2, 3), repeat=3)], dtype=float)
    best = np.max(grid @ [0.1, 0.2, -0.1] + dt.Ensemble(members, how).predict(grid)[:, 0])
    assert result.status == "optimal"
    assert result.objective == pytest.approx(best, abs=1e-6)


def test_members_of_several_kinds_and_weights():
    members = [
        LinearRegression().fit(X, X[:, 0]),
        RandomForestRegressor(3, max_depth=2, random_state=0).fit(X, X[:, 1]),
        lambda Z: Z[:, 0] * Z[:, 2],
        nets(1, 1, torch.float32)[0],
    ]
    ensemble = dt.Ensemble(members, weights=[1, 0, 2, 1])
    truth = np.average(answers(members), axis=0, weights=[1, 0, 2, 1])
    assert np.allclose(ensemble.predict(X), truth, rtol=0, atol=1e-14)
    known = ensemble.describe(X)
    assert known.program_if_known(3) is None
    assert known.layers_if_known() is None
    assert known.dtypes == ("float64", "float32")
    u = torch.tensor(X, requires_grad=True)
    values = ensemble.snapshot("cpu")(u)
    assert np.allclose(values.detach().numpy(), truth, rtol=0, atol=1e-6)
    (slope,) = torch.autograd.grad(values.sum(), u)
    assert torch.all(slope[:, 1].abs() < 1.0)
    assert torch.any(slope != 0.0)


def test_a_vote_counts_classes():
    labels = [(X @ slope > 0).astype(int) for slope in np.random.default_rng(1).normal(size=(3, 3))]
    members = [LogisticRegression().fit(X, label) for label in labels]
    votes = np.mean([member.predict(X) for member in members], axis=0)
    ensemble = dt.Ensemble(members, "vote")
    assert np.allclose(ensemble.predict(X)[:, 0], votes)
    problem = dt.Problem(dt.Mip(cost=[0.0] * 4, lower=[-1, -1, -1, 0], upper=1.0))
    block = problem.add_predictor(ensemble, [0, 1, 2], [3], output_type="classification")
    assert np.array_equal(block.decode(block.predictor.predict(X))[:, 0], votes > 0.5)
    u = torch.tensor(X, requires_grad=True)
    values = ensemble.snapshot("cpu")(u)
    assert np.allclose(values.detach().numpy()[:, 0], votes)
    assert torch.all(torch.autograd.grad(values.sum(), u)[0] == 0.0)
    two = dt.Ensemble(members, "vote")
    problem = dt.Problem(dt.Mip(cost=[0.0] * 5, lower=[-1, -1, -1, 0, 0], upper=1.0))
    block = problem.add_predictor(two, [0, 1, 2], [3, 4], output_type="classification")
    assert np.array_equal(block.decode(block.predictor.predict(X))[:, 1], votes >= 0.5)


def test_several_columns_vote_for_the_largest():
    members = nets(3, 3)
    winners = answers(members).argmax(axis=2)
    shares = np.array([np.bincount(column, minlength=3) / 3 for column in winners.T])
    assert np.allclose(dt.Ensemble(members, "vote").predict(X), shares)


@pytest.mark.parametrize("how", ["min", "max", "mean", "vote"])
def test_two_columns_of_classifiers(how):
    members = [LogisticRegression().fit(X, X[:, k] > 0) for k in range(2)]
    problem = dt.Problem(dt.Mip(cost=[0.0] * 5, lower=-1.0, upper=1.0))
    block = problem.add_predictor(dt.Ensemble(members, how), [0, 1, 2], [3, 4])
    both = np.array([member.predict_proba(X) for member in members])
    votes = np.mean([np.eye(2)[one.argmax(axis=1)] for one in both], axis=0)
    truth = votes if how == "vote" else ARRAY[how](both, axis=0)
    assert np.allclose(block.predictor.predict(X), truth, rtol=0, atol=1e-12)


def test_each_member_of_a_vote_is_compared_with_its_own_centre():
    logits = nets(1, 1)[0]
    probability = nn.Sequential(*nets(1, 1)[0], nn.Sigmoid())
    votes = np.mean(
        [logits(torch.tensor(X)).detach() >= 0.0, probability(torch.tensor(X)).detach() >= 0.5], 0
    )
    assert 0.0 < votes.mean() < 1.0
    ensemble = dt.Ensemble([logits, probability], "vote")
    assert np.allclose(ensemble.predict(X), votes)
    assert np.allclose(ensemble.snapshot("cpu")(torch.tensor(X)).detach().numpy(), votes)


def test_a_vote_of_what_may_be_probabilities_is_refused():
    share = dt.Ensemble([nets(1, 1)[0], lambda Z: 1.0 / (1.0 + np.exp(-Z[:, 0]))], "vote")
    with pytest.raises(dt.PredictorError, match="probabilities or logits; in a vote"):
        share.describe(X)


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Sequential(nn.ReLU(), nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)),
        lambda: nn.Sequential(nn.ReLU(), nn.Linear(3, 2)),
        lambda: nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)),
        lambda: nn.Identity(),
    ],
)
def test_means_of_other_forms_are_written_out_or_refused(make):
    torch.manual_seed(1)
    ensemble = dt.Ensemble([make().double() for _ in range(3)])
    layers = ensemble.describe(X).layers_if_known()
    if layers is not None:
        assert np.allclose(evaluate(layers, X), ensemble.predict(X), rtol=0, atol=1e-13)
    assert (layers is None) == isinstance(make(), nn.Identity)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: dt.Ensemble([]), "list of predictors is empty"),
        (lambda: dt.Ensemble("net.onnx"), "takes a list"),
        (lambda: dt.Ensemble(nets(), weights=[1, 2]), "give 3 numbers"),
        (lambda: dt.Ensemble(nets(), weights=[1, -1, 1]), "at least 0"),
        (lambda: dt.Ensemble(nets(), "max", weights=[1, 1, 1]), "belong to a mean or a vote"),
        (lambda: dt.Ensemble([*nets(1, 1), *nets(1, 2)]).predict(X), "give 1, 2 outputs"),
    ],
)
def test_what_is_refused(make, words):
    with pytest.raises(dt.PredictorError, match=words):
        make()


def test_another_way_of_putting_together_is_refused():
    with pytest.raises(dt.OptionError, match="median"):
        dt.Ensemble(nets(), "median")


def test_a_wrong_number_of_features_is_named():
    problem = dt.Problem(dt.Mip(cost=[0.0] * 3, lower=-1.0, upper=1.0))
    with pytest.raises(dt.PredictorError, match="takes 3 features"):
        problem.add_predictor(dt.Ensemble(nets(outputs=1)), [0, 1], [2])
