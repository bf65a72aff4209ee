"""Measures of risk: values by numpy, optima by enumeration, bounds by samples."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, RandomForestRegressor, VotingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import dovetail as dt
from dovetail.bounds.planes.domain import Boxes
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.core.predictor import as_predictor
from tests.conftest import FULL
from tests.tools import TOOLS, numbers

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, (60, 3))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=60)
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")
U = RNG.uniform(-2.0, 2.0, (30, 3))
GRID = np.array([*itertools.product(range(-2, 3), repeat=3)], dtype=float)


def nets(count=5, outputs=1):
    torch.manual_seed(0)
    make = lambda: nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, outputs))  # noqa: E731
    return [make().double() for _ in range(count)]


def answers(members):
    return np.array([as_predictor(member).predict(U) for member in members])


def worst(values, share, bad):
    """The mean of the worst share of equally likely values, by integrating their quantiles."""
    ordered = np.sort(values, axis=0)[:: 1 if bad == "low" else -1]
    edges = np.minimum(np.arange(len(values) + 1) / len(values), share)
    return np.tensordot(np.diff(edges) / share, ordered, axes=1)


@pytest.mark.parametrize("bad", ["low", "high"])
def test_values_of_networks(bad):
    members, sign = nets(7, outputs=2), 1.0 if bad == "high" else -1.0
    said = answers(members)
    expected = {
        dt.MeanSpread(1.5, bad=bad): said.mean(axis=0) + sign * 1.5 * said.std(axis=0),
        dt.CVaR(0.3, bad=bad): worst(said, 0.3, bad),
        dt.CVaR(0.01, bad=bad): said.max(axis=0) if bad == "high" else said.min(axis=0),
        dt.CVaR(1.0, bad=bad): said.mean(axis=0),
        dt.Worst(bad=bad): said.max(axis=0) if bad == "high" else said.min(axis=0),
    }
    for risk, truth in expected.items():
        cautious = risk.of(members)
        known = cautious.describe(U)
        assert np.allclose(cautious.predict(U), truth, rtol=0, atol=1e-13)
        assert np.allclose(known.program(3).values(U), truth, rtol=0, atol=1e-7)  # a root of nearly 0
        assert np.allclose(cautious.snapshot("cpu")(torch.tensor(U)).detach(), truth, rtol=0, atol=1e-13)
        assert known.program(3).arithmetic is not None and not known.smooth


def test_each_output_has_a_bad_side_of_its_own():
    said = answers(nets(4, outputs=2))
    found = dt.Worst(bad=["low", "high"]).of(nets(4, outputs=2)).predict(U)
    assert np.array_equal(found, np.column_stack([said.min(axis=0)[:, 0], said.max(axis=0)[:, 1]]))
    with pytest.raises(dt.PredictorError, match="bad= has 2 entries for 1 outputs"):
        dt.Worst(bad=["low", "high"]).of(nets()).describe(U)


def test_equal_members_have_no_spread_and_a_gradient():
    net = nets(1)[0]
    cautious, inputs = dt.MeanSpread(3.0, bad="low").of([net, net]), torch.tensor(U, requires_grad=True)
    assert np.allclose(cautious.predict(U), answers([net])[0], rtol=0, atol=1e-12)
    (slope,) = torch.autograd.grad(cautious.snapshot("cpu")(inputs).sum(), inputs)
    (own,) = torch.autograd.grad(net(inputs).sum(), inputs)
    assert torch.allclose(slope, own)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestRegressor(8, max_depth=4, random_state=0),
        ExtraTreesRegressor(5, max_depth=3, random_state=0),
        BaggingRegressor(Ridge(), 6, random_state=0),
        BaggingRegressor(Ridge(), 6, max_features=2, bootstrap_features=True, random_state=0),
        BaggingRegressor(None, 6, max_features=2, random_state=0),
        VotingRegressor([("a", Ridge(9.0)), ("b", LinearRegression())], weights=[3.0, 1.0]),
        make_pipeline(StandardScaler(), RandomForestRegressor(5, max_depth=3, random_state=0)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_members_of_scikit_learn(model):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    cautious = dt.MeanSpread(1.0, bad="low").of(model.fit(frame, Y))
    last = model[-1] if hasattr(model, "steps") else model
    rows = pd.DataFrame(U, columns=frame.columns)
    scaled = model[0].transform(rows) if hasattr(model, "steps") else U
    chosen = getattr(last, "estimators_features_", [slice(None)] * len(last.estimators_))
    each = np.array(
        [one.predict(scaled[:, places]) for one, places in zip(last.estimators_, chosen, strict=True)]
    )
    weights = (
        np.full(len(each), 1.0 / len(each)) if type(model) is not VotingRegressor else np.array([0.75, 0.25])
    )
    mean = weights @ each
    truth = mean - np.sqrt(weights @ (each - mean) ** 2)
    assert np.allclose(cautious.predict(U)[:, 0], truth, rtol=0, atol=1e-9)
    assert np.allclose(mean, model.predict(rows), rtol=0, atol=1e-9)
    inner = cautious.apart().inner.describe(U)
    if inner.trees is not None:
        assert np.allclose(inner.trees().values(U), each.T, rtol=0, atol=1e-9)
    else:
        assert np.allclose(cautious.describe(U).program(3).values(U)[:, 0], truth, rtol=0, atol=1e-7)


@pytest.mark.parametrize("form", ["deviation", "variance", "log deviation", "log variance"])
def test_mean_and_deviation_of_a_module(form):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.body, self.tail = nn.Linear(3, 1).double(), nn.Linear(3, 1).double()

        def forward(self, x):
            return self.body(x), torch.square(self.tail(x))[:, 0]

    mean, spread = (part.detach().numpy().reshape(-1) for part in Two()(torch.tensor(U)))
    spread = {
        "deviation": spread, "variance": np.sqrt(spread), "log deviation": np.exp(spread),
        "log variance": np.exp(0.5 * spread),
    }[form]  # fmt: skip
    cautious = dt.CVaR(0.1, bad="high").of(dt.MeanDeviation(Two(), form))
    draws = stats.norm.ppf(np.linspace(0.9, 1.0, 200_001)[:-1] + 2.5e-7)
    assert np.allclose(cautious.predict(U)[:, 0], mean + draws.mean() * spread, rtol=1e-4)
    program = cautious.describe(U).program(3)
    assert np.allclose(program.values(U), cautious.predict(U), rtol=0, atol=1e-7)


def test_quantiles():
    levels = [0.1, 0.5, 0.9]
    net = nets(1, outputs=3)[0]
    said = answers([net])[0]
    quantile = np.array([np.interp(np.linspace(0.0, 0.3, 300_001), levels, row) for row in said])
    assert np.allclose(
        dt.CVaR(0.3, bad="low").of(dt.Quantiles(net, levels)).predict(U)[:, 0],
        quantile.mean(axis=1),
        atol=1e-5,
    )
    assert np.allclose(dt.Worst(bad="high").of(dt.Quantiles(net, levels)).predict(U)[:, 0], said[:, 2])
    with pytest.raises(dt.PredictorError, match="rising numbers"):
        dt.Quantiles(net, [0.5, 0.1])


MODELS = {
    "networks": lambda: (nets(4), dt.MeanSpread(1.0, bad="low")),
    "worst networks": lambda: (nets(6), dt.CVaR(0.4, bad="low")),
    "forest": lambda: (
        RandomForestRegressor(6, max_depth=3, random_state=0).fit(X, Y), dt.CVaR(0.3, bad="low")
    ),
    "bagging": lambda: (BaggingRegressor(Ridge(), 5, random_state=0).fit(X, Y), dt.Worst(bad="low")),
    "Gaussian process": lambda: (
        GaussianProcessRegressor(RBF() + WhiteKernel(0.1), optimizer=None).fit(
            pd.DataFrame(X, columns=["a", "b", "c"]), Y
        ),
        dt.MeanSpread(1.0, bad="low"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("tool", "kind"), [*zip(TOOLS, MODELS, strict=True)], ids=str)
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_risk_in_objective_and_constraint_of_every_tool(tool, kind):
    """max cautious - 0.1 x0, where the cautious prediction is at most a limit, on a grid."""
    model, risk = MODELS[kind]()
    values = risk.of(model).predict(GRID)[:, 0]
    limit = float(np.quantile(values, 0.9))
    best = np.max((values - 0.1 * GRID[:, 0])[values <= limit])
    program = tool.new()
    x = tool.variables(program, (1, 3), -2, 2, integer=True)
    y = tool.variables(program, (1, 1), -1e3, 1e3)
    constr = dt.add_predictor_constr(program, model, x, y, risk=risk)
    tool.at_most(program, [(1.0, tool.at(y, (0, 0)))], limit)
    tool.objective(program, [(1.0, tool.at(y, (0, 0))), (-0.1, tool.at(x, (0, 0)))], "max")
    result = dt.solve(program, time_limit=60.0, log=False)
    assert result.objective == pytest.approx(best, abs=1e-6)
    assert np.max(constr.get_error()) <= 1e-6
    assert np.all(np.abs(numbers(constr.input_values)) <= 2)


@pytest.mark.parametrize("risk", [dt.MeanSpread(2.0, bad="low"), dt.CVaR(0.3, bad="high")], ids=str)
def test_planes_hold(risk):
    rng = np.random.default_rng(0)
    cautious = risk.of(nets(6))
    planes = NetworkPlanes(cautious.describe(U).program(3).graph())
    centre, reach = rng.uniform(-2.0, 2.0, (40, 3)), rng.uniform(0.01, 1.0, (40, 1))
    low, high = torch.tensor(centre - reach), torch.tensor(centre + reach)
    ranges = planes.output_ranges(Boxes(low, high))
    for _ in range(50):
        at = centre + reach * rng.uniform(-1.0, 1.0, centre.shape)
        said = cautious.predict(at)
        assert np.all((ranges.lower[-1].numpy() <= said) & (said <= ranges.upper[-1].numpy()))


def test_blocks_of_a_template():
    n, count = 10_000 if FULL else 300, 4
    members, problem = nets(count), dt.Problem(sense="max")
    age = np.random.default_rng(0).uniform(-1.0, 1.0, n)
    shops = problem.add_template(
        n,
        {
            "price": dt.Family(lower=-1.0, upper=1.0),
            "age": dt.Family(fixed=age),
            "gift": dt.Family(upper=1.0, integer=True, cost=-0.05),
            "sold": dt.Family(lower=-50.0, upper=50.0, cost=1.0),
        },
        coupling=[dt.FamilyRow({"gift": 1.0}, upper=0.3 * n)],
    )
    problem.add_predictor(members, shops["price", "age", "gift"], shops["sold"], risk=dt.CVaR(0.5, bad="low"))
    start = problem.predict(np.zeros(problem.stated.n_columns))
    result = dt.solve(problem, dt.Auto(effort=1), log=False)
    x = result.x
    inputs = x[shops["price", "age", "gift"].columns]
    each = np.array([as_predictor(member).predict(inputs)[:, 0] for member in members])
    assert np.allclose(x[shops["sold"].columns][:, 0], np.sort(each, axis=0)[:2].mean(axis=0), atol=1e-9)
    assert result.objective > start[shops["sold"].columns].sum()
    assert dt.check(problem, x).within()


def test_what_has_no_opinions_is_refused():
    problem = dt.Problem(dt.Mip([0.0] * 4))
    with pytest.raises(dt.PredictorError, match="Ridge gives one"):
        problem.add_predictor(Ridge().fit(X, Y), [0, 1, 2], [3], risk=dt.Worst(bad="low"))
    with pytest.raises(dt.OptionError, match="give an object such as dt.MeanSpread"):
        problem.add_predictor(nets(), [0, 1, 2], [3], risk="worst")
    with pytest.raises(dt.PredictorError, match="equal weight"):
        dt.CVaR(0.5, bad="low").of(dt.Ensemble(nets(2), weights=[1.0, 2.0]))
    with pytest.raises(dt.OptionError, match="bad is 'left'"):
        dt.Worst(bad="left")
    with pytest.raises(dt.OptionError, match="share"):
        dt.CVaR(0.0, bad="low")
