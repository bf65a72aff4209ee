"""The baseline: what it writes, what it refuses, and what its answers are worth."""

import itertools
import sys

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.core.predictor import as_predictor
from dovetail.networks.layers import Activation, Dense
from dovetail.run.budget import Budget
from dovetail.testing.problems import busy
from dovetail_study.big_m.scip_formulation import ScipFormulation, formulation_size
from dovetail_study.problems.networks import build
from tests.conftest import sample
from tests.small import linear_net, random_mlp

FORMULATIONS = ("bigm", "sos")


def whole(net, high=3, d=2, cost=0.1) -> dt.Problem:
    """min cost'x + y over whole x in {0..high}^d."""
    mip = dt.Mip(
        cost=[cost] * d + [1.0], lower=[0.0] * d + [-np.inf], upper=[float(high)] * d + [np.inf],
        integer=[True] * d + [False],
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(net, list(range(d)), [d])
    return problem


def enumerated(problem) -> float:
    """The best objective over all whole inputs, by trying them."""
    d = problem.mip.n_columns - 1
    ranges = [range(int(problem.mip.upper[j]) + 1) for j in range(d)]
    points = (np.array([*x, 0.0]) for x in itertools.product(*ranges))
    return min(problem.mip.objective(problem.predict(x)) for x in points)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("seed", sample(range(4)))
def test_the_optimum_is_the_enumerated_one(formulation, seed):
    problem = whole(random_mlp(2, seed=seed))
    result = dt.solve(problem, dt.BigM(formulation=formulation), log=False)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(enumerated(problem), abs=1e-6)
    assert result.bound == pytest.approx(result.objective, abs=1e-6)


@pytest.mark.parametrize("activation", [nn.Sigmoid, nn.Tanh, nn.Softplus])
def test_smooth_activations_are_written_too(activation):
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(2, 3), activation(), nn.Linear(3, 1, bias=False)).double()
    problem = whole(net)
    result = dt.solve(problem, "big-m", log=False)
    assert result.objective == pytest.approx(enumerated(problem), abs=1e-6)


def test_a_chain_of_networks_and_a_nested_sequence():
    mip = dt.Mip(cost=[0.0, 0.0, 1.0], lower=[-2.0, -np.inf, -np.inf], upper=[2.0, np.inf, np.inf])
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([2.0], 1.0), [0], [1])
    second = nn.Sequential(
        nn.Sequential(linear_net([[1.0], [-1.0]]), nn.ReLU()), nn.Dropout(), linear_net([1.0, 1.0])
    )
    problem.add_predictor(second, [1], [2])
    result = dt.solve(problem, "big-m", log=False)
    assert result.status == "optimal"
    assert result.value(0) == pytest.approx(-0.5, abs=1e-6)  # |2 x + 1| is 0 there
    assert result.objective == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("ending", "threshold"),
    [
        ((), 0.0),
        ((), 0.8),
        ((nn.Sigmoid(),), 0.5),
        ((nn.Sigmoid(),), 0.3),
        ((nn.Tanh(),), 0.2),
        ((nn.ReLU(),), 0.1),
    ],
)
def test_the_class_threshold_is_the_users(ending, threshold):
    """PySCIPOpt-ML compares with 0.5, or with a logit of 0 after a sigmoid; neither is what was asked."""
    for x, expected in ((threshold - 0.05, 0.0), (threshold + 0.05, 1.0)):
        inverse = {nn.Sigmoid: lambda p: np.log(p / (1 - p)), nn.Tanh: np.arctanh}
        for part in ending:
            x = inverse.get(type(part), float)(x)
        mip = dt.Mip(cost=[0.0, 1.0], lower=[x, 0.0], upper=[x + 1e-3, 1.0])
        problem = dt.Problem(mip)
        net = nn.Sequential(linear_net([1.0]), *ending)
        problem.add_predictor(net, [0], [1], output_type="classification", threshold=threshold)
        for sense in ("min", "max"):
            model = ScipFormulation(
                dt.Mip(mip.cost * (1 if sense == "min" else -1), lower=mip.lower, upper=mip.upper),
                mip.lower,
                mip.upper,
            )
            model.add(as_predictor(net).layers(), np.array([[0]]), np.array([[1]]), "bigm", threshold)
            assert model.solve(Budget(10.0), lambda x: None, lambda n: None) == "optimal"
            assert model.points()[0][1] == expected


def test_the_largest_of_three_wins():
    net = linear_net([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    mip = dt.Mip(cost=[0.1, 0.1, 0.0, 0.0, -1.0], lower=[-1.0, -1.0, 0.0, 0.0, 0.0], upper=1.0)
    problem = dt.Problem(mip)
    problem.add_predictor(
        nn.Sequential(net, nn.Softmax(dim=1)), [0, 1], [2, 3, 4], output_type="classification"
    )
    result = dt.solve(problem, "big-m", log=False)
    assert result.value([2, 3, 4]).tolist() == [0.0, 0.0, 1.0]
    assert result.objective == pytest.approx(-1.2, abs=1e-5)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("classifies", [False, True])
def test_the_size_is_counted_before_it_is_built(formulation, classifies):
    layers = as_predictor(build("3x7", 4)).layers()
    n = 5
    mip = dt.Mip(cost=np.zeros(5 * n), lower=-1.0, upper=1.0)
    model = ScipFormulation(mip, mip.lower, mip.upper)
    x, y = np.arange(4 * n).reshape(n, 4), 4 * n + np.arange(n)[:, None]
    model.add(layers, x, y, formulation, 0.0 if classifies else None)
    size = formulation_size(layers, n, formulation, classifies=classifies)
    variables, constraints = model.size
    assert size.variables == variables - mip.n_columns
    assert size.constraints == constraints


def test_the_papers_count_is_that_of_sixty_samples():
    """The paper says 5.9 M variables and 7.8 M constraints for 64x512 and 500 samples."""
    inner = [Dense(np.broadcast_to(0.0, (512, 512)), np.zeros(512)), Activation("relu")] * 64
    last = Dense(np.zeros((1, 512)), np.zeros(1))
    size = formulation_size([*inner, last], 60)
    assert round(size.variables / 1e6, 1) == 5.9
    assert round(size.constraints / 1e6, 1) == 7.9
    assert round(formulation_size([*inner, last], 500).variables / 1e6) == 49


@pytest.mark.parametrize(
    ("net", "named"),
    [
        (build("conv1d", 2), "Convolutional"),
        (build("lstm", 2), "Recurrent"),
        (build("residual", 2), "Residual"),
        (nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3), nn.Linear(3, 1)), r"LayerNorm \(at '1'\)"),
        (nn.Sequential(nn.Linear(2, 3), nn.Softplus(beta=2.0), nn.Linear(3, 1)), r"Softplus \(at '1'\)"),
        (nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.GELU()), nn.Linear(3, 1)), r"GELU \(at '1.0'\)"),
    ],
)  # fmt: skip
def test_a_layer_that_cannot_be_written_is_named(net, named):
    with pytest.raises(dt.UnsupportedError, match=f"layer {named}.* cannot be written out"):
        dt.solve(whole(net), "big-m", log=False)


def test_a_plain_function_cannot_be_written():
    problem = whole(lambda X: X[:, :1])
    with pytest.raises(dt.UnsupportedError, match="cannot be written out as layers"):
        dt.solve(problem, "big-m", log=False)


def test_a_module_that_is_more_than_its_layers_is_refused():
    net = random_mlp(2)
    net.register_forward_hook(lambda module, inputs, outputs: outputs + 1.0)
    with pytest.raises(dt.UnsupportedError, match="forward hooks"):
        dt.solve(whole(net), "big-m", log=False)


def test_big_m_rows_need_finite_inputs_and_sos_does_not():
    mip = dt.Mip(cost=[0.0, 1.0], lower=[-np.inf, -5.0], upper=[np.inf, np.inf], names=["dose", "y"])
    problem = dt.Problem(mip)
    bend = nn.Sequential(linear_net([[1.0], [-1.0]]), nn.ReLU(), linear_net([1.0, 1.0]))
    problem.add_predictor(bend, [0], [1])
    with pytest.raises(dt.UnsupportedError, match="input dose has no finite bounds"):
        dt.solve(problem, "big-m", log=False)
    assert dt.solve(problem, dt.BigM(formulation="sos"), log=False).objective == pytest.approx(0.0, abs=1e-6)


def test_bounds_that_explode_are_refused():
    deep = nn.Sequential(
        *[part for _ in range(30) for part in (linear_net(20.0 * np.ones((2, 2))), nn.ReLU())]
    )
    net = nn.Sequential(deep, linear_net([1e-30, 1e-30]))
    with pytest.raises(dt.UnsupportedError, match=r"grow to .* through 61 layers"):
        dt.solve(whole(net), "big-m", log=False)


def test_what_scip_says_and_what_is_true_are_both_reported():
    """SCIP puts classes on the threshold, where its tolerance counts them and the network does not."""
    problem = busy(3)
    result = dt.solve(problem, "big-m", log=False)
    raw = problem.mip.sign * min(row.lagrangian for row in result.trace if row.residuals)
    assert raw > result.objective
    assert f"its own objective {raw:g}, verified {result.objective:g}" in result.message
    assert result.residual in (0.0, 1.0)  # of a class on the threshold: by the last digit of its logit
    assert result.status == "feasible"
    assert dt.check(problem, result.x).within()


def test_infeasible_is_not_taken_from_scip():
    mip = dt.Mip(
        cost=[1.0, 0.0], A=[[0.0, 1.0]], row_lower=[3.0], row_upper=[4.0], lower=[0.0, -9.0], upper=[1.0, 9.0]
    )
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([1.0]), [0], [1])
    result = dt.solve(problem, "big-m", log=False)
    assert result.status == "no_solution"
    assert "SCIP says infeasible" in result.message
    assert result.written.end == "infeasible" and result.written.said == "infeasible"


def test_infeasible_beside_a_verified_point_is_reported_and_not_believed(monkeypatch):
    monkeypatch.setattr(ScipFormulation, "solve", lambda *args, **kwargs: "infeasible")
    monkeypatch.setattr(ScipFormulation, "points", lambda self: [])
    monkeypatch.setattr(ScipFormulation, "bound", np.inf)
    problem = whole(random_mlp(2))
    known = problem.predict(np.zeros(3))
    result = dt.solve(problem, "big-m", start=known, log=False)
    assert result.status == "feasible" and np.array_equal(result.x, known)
    assert result.written.end == "infeasible"
    assert "SCIP says infeasible" in result.message
    assert "its word is not taken: a verified point is known" in result.message


def test_a_missing_library_is_named_with_the_fix(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyscipopt_ml.add_predictor", None)
    with pytest.raises(dt.MissingDependencyError, match="PySCIPOpt-ML: pip install pyscipopt-ml"):
        dt.solve(whole(random_mlp(2)), "big-m", log=False)


def test_a_predictor_that_fails_inside_scip_comes_out(monkeypatch):
    problem = busy(3)
    predictor, calls = problem.blocks[0].predictor, []
    honest = predictor.predict

    def fragile(X):
        calls.append(1)
        if len(calls) > 6:
            raise RuntimeError("no more")
        return honest(X)

    monkeypatch.setattr(predictor, "predict", fragile)
    with pytest.raises(RuntimeError, match="no more"):
        dt.solve(problem, "big-m", log=False)


@pytest.mark.parametrize(
    "bad", [{"formulation": "indicator"}, {"memory_limit": 0.0}, {"solve_seconds": -1.0}]
)
def test_options_are_checked(bad):
    with pytest.raises(dt.OptionError, match=f"BigM: {next(iter(bad))}"):
        dt.BigM(**bad)


def test_with_a_margin_points_survive_and_nothing_is_proven():
    problem = busy(3)
    result = dt.solve(problem, dt.BigM(margin=1e-4), log=False)
    raw = [-row.lagrangian for row in result.trace if row.residuals]
    assert result.objective == max(raw) == 3.0
    other = dt.solve(busy(12), dt.BigM(margin=1e-4), time_limit=1.0, log=False)
    assert "its bound" not in other.message


def test_the_networks_own_rounding_is_taken_off_the_bound():
    """In float32 the bound of exact layers holds up to what float32 rounds; a class may flip: no bound."""
    exact = dt.solve(whole(random_mlp(2, seed=3)), "big-m", log=False)
    assert exact.status == "optimal"
    problem = whole(random_mlp(2, seed=3, dtype=torch.float32))
    coarse = dt.solve(problem, "big-m", log=False)
    assert coarse.status == "feasible" and coarse.objective == pytest.approx(enumerated(problem), abs=1e-4)
    problem = dt.Problem(dt.Mip(cost=[0.1, 0.1, 1.0], lower=0.0, upper=[3.0, 3.0, 1.0], integer=True))
    net = random_mlp(2, seed=3, dtype=torch.float32)
    problem.add_predictor(net, [0, 1], [2], output_type="classification")
    result = dt.solve(problem, "big-m", log=False)
    assert result.x is not None and result.status == "feasible"
