"""Certificates of what solves prove: made from the bound alone, and checked by other code."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.tree import DecisionTreeRegressor
from torch import nn

import dovetail as dt
from dovetail.branching import model as models
from dovetail.certificates.checker.verification import verify
from dovetail.certificates.proof import CertificateKind
from dovetail.certifying import certify as certifying
from dovetail.certifying.certify import certify
from tests.certificates.reference import graphs_of, least_value, network, problem_of
from tests.differential.proof_cases import make


def verified(problem, certificate):
    return verify(problem, certificate, graphs_of(problem))


@pytest.fixture(scope="module")
def solved():
    problem = problem_of(network(3))
    return problem, dt.solve(problem, log=False)


def test_a_proof_has_a_certificate(solved):
    problem, result = solved
    assert result.status == "optimal"
    certificate = result.certificate
    assert certificate.kind == "checked"
    assert certificate is result.certificate
    assert certificate.leaves > 1
    assert certificate.bound == pytest.approx(result.bound, abs=1e-5)
    found = dt.check(problem, result.x, certificate=certificate)
    assert found.within()
    assert found.verification.holds
    assert found.verification.bound <= result.objective


def test_results_go_through_pickle_and_json(solved):
    _, result = solved
    proved = result.certificate.bound
    assert pickle.loads(pickle.dumps(result)).certificate.bound == proved
    assert dt.Result.from_json(result.to_json()).certificate is None


def test_the_host_alone():
    mip = dt.Mip(
        cost=[1.0, 2.0, 1.0], A=[[1.0, 1.0, 0.0]], row_lower=[3.0], row_upper=[9.0], upper=[9.0, 9.0, 40.0]
    )
    problem = dt.Problem(mip)
    problem.add_predictor(lambda X: np.abs(X), [0], [2])
    result = dt.solve(problem, log=False)
    assert result.certificate.kind == "checked"
    assert result.certificate.parts == ()
    assert verified(problem, result.certificate).bound == pytest.approx(3.0, abs=1e-4)


@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize("offset", [0.0, 123.0])
def test_senses_and_constants(sense, offset):
    net = network(7)
    mip = dt.Mip(
        cost=[0.2, -0.1, 1.0], lower=[-1.0, -1.0, -50.0], upper=[1.0, 1.0, 50.0], sense=sense, offset=offset
    )
    problem = dt.Problem(mip)
    problem.add_predictor(net, [0, 1], [2], name="net")
    low = least_value(problem)
    certificate = certify(problem, low - 0.05, "boxes", 20.0)
    assert certificate.bound == pytest.approx(low - 0.05, abs=1e-6)
    found = verified(problem, certificate)
    assert found.holds
    assert mip.sign * found.bound <= low


def test_a_bound_that_is_wrong_gets_a_certificate_of_what_is_true():
    problem = problem_of(network(3))
    true = least_value(problem)
    certificate = certify(problem, true + 0.1, "boxes", 2.0)
    assert certificate.bound <= true
    assert verified(problem, certificate).holds


def test_an_engine_is_named_where_nothing_can_be_written_down(monkeypatch):
    problem = problem_of(network(3))
    monkeypatch.setattr(models, "MOST_ENTRIES", 0)
    certificate = certify(problem, least_value(problem) - 0.01, "exact", 5.0)
    assert certificate.kind is CertificateKind.SOLVER
    assert "highspy" in certificate.source
    assert str(verified(problem, certificate)).startswith("not re-verified (solver: highspy")


def test_what_would_be_too_large_is_not_kept(monkeypatch):
    problem = problem_of(network(3))
    monkeypatch.setattr(certifying, "LARGEST_BYTES", 100)
    certificate = certify(problem, least_value(problem) - 0.01, "boxes", 5.0)
    assert certificate is None or certificate.parts == ()


def test_a_network_that_nobody_knows_leaves_the_host():
    problem = problem_of(lambda X: np.sin(X[:, :1]))
    certificate = certify(problem, -1.0, "boxes", 5.0)
    assert certificate.parts == ()
    assert certificate.bound == pytest.approx(-50.2, abs=1e-3)


def test_integers_classes_and_smooth_functions():
    torch.manual_seed(5)
    mip = dt.Mip(
        cost=[0.3, -0.2, -1.0, 0.5], lower=[-2.0, -1.0, 0.0, -9.0], upper=[2.0, 1.0, 1.0, 9.0],
        integer=[True, False, True, False],
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(network(8), [0, 1], [2], output_type="classification", name="class")
    smooth = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    problem.add_predictor(smooth, [1, 0], [3], name="smooth")
    low = least_value(problem)
    certificate = certify(problem, low - 0.02, "boxes", 20.0)
    assert certificate.bound == pytest.approx(low - 0.02, abs=1e-6)
    assert verified(problem, certificate).holds


@pytest.mark.filterwarnings("error")
def test_a_column_without_bounds_is_not_halved():
    case = make(185)
    certificate = certify(case.problem, -50.0, "boxes", 5.0)
    assert verified(case.problem, certificate).holds


def test_splits_of_trees_have_the_word_of_engines():
    trees = dt.Problem(dt.Mip(cost=[0.1, 1.0], lower=[0.0, -9.0], upper=9.0))
    model = DecisionTreeRegressor(max_depth=2).fit(np.arange(9.0)[:, None], np.arange(9.0) % 4)
    trees.add_predictor(model, [0], [1])
    made = certify(trees, 0.0, "splits", 5.0)
    assert made is not None and made.kind is CertificateKind.SOLVER and made.source.startswith("highspy")
