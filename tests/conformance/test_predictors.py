"""Every predictor: the owner's own answer, the same map for gradients, and the owner's object untouched."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.core import predictor as register
from dovetail.core.block import Block
from dovetail.core.check import Checker
from dovetail.core.layers import evaluate
from dovetail.core.predictor import as_predictor
from tests.conformance import nets
from tests.conformance.predictor_kinds import (
    DOUBLE,
    KINDS,
    RANDOM,
    TWINS,
    Keras,
    Recipe,
    Torch,
    Whole,
    twin,
)

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


@pytest.fixture(autouse=True)
def _restored(monkeypatch):
    """What a test teaches dovetail is forgotten after it."""
    monkeypatch.setattr(register, "_register", [*register._register])


def points(count=7, seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, (count, nets.FEATURES))


_made: dict[str, tuple] = {}


@pytest.fixture
def only_read(kind, tmp_path_factory):
    """The owner's object and its predictor, made once for the tests that change nothing."""
    if str(kind) not in _made:
        owner = kind.make(tmp_path_factory.mktemp("owner"))
        _made[str(kind)] = owner, as_predictor(owner)
    return _made[str(kind)]


def apart(a, b):
    """The largest difference, relative to max(1, |value|)."""
    assert a.shape == b.shape
    return np.max(np.abs(a - b) / np.maximum(1.0, np.abs(b)), initial=0.0)


def tied(kind, owner, X):
    """A problem around the box of some points whose objective is the sum of all outputs."""
    d, q = kind.features, kind.outputs
    mip = dt.Mip(
        cost=[0.0] * d + [1.0] * q,
        lower=[*X.min(axis=0), *[-np.inf] * q],
        upper=[*X.max(axis=0), *[np.inf] * q],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(owner, range(d), range(d, d + q))
    return problem


def slope_of(forward, X):
    """Values, and the gradient of one sum of them."""
    u = torch.tensor(X, requires_grad=True)
    values = forward(u)
    weights = torch.linspace(1.0, 2.0, values.shape[1], dtype=torch.float64)
    (slope,) = torch.autograd.grad((values @ weights).sum(), u)
    return values.detach(), slope.numpy(), weights


@pytest.mark.parametrize("kind", [*KINDS, *RANDOM], ids=str)
class TestEveryKind:
    def test_predict_is_the_owner_s_own_answer(self, kind, only_read):
        (owner, predictor), X = only_read, kind.points()
        truth, said = kind.answer(owner, X), predictor.predict(X)
        assert said.dtype == np.float64 and said.shape == (len(X), kind.outputs)
        assert np.array_equal(said, truth) if kind.identical else apart(said, truth) <= kind.close

    def test_rows_do_not_influence_each_other(self, kind, only_read):
        (_, predictor), X = only_read, kind.points()
        said = predictor.predict(X)
        assert apart(predictor.predict(X[::-1])[::-1], said) <= kind.close
        for i in (0, len(X) - 1):
            assert apart(predictor.predict(X[i : i + 1]), said[i : i + 1]) <= kind.close
        assert predictor.predict(X[:0]).shape == (0, kind.outputs)

    def test_other_batches_stay_within_what_the_check_allows(self, kind, only_read):
        """Alone, in halves, backwards: what the same rows give is within the rounding that was measured."""
        (_, predictor), X = only_read, kind.points()[:7]
        n, d, q = len(X), kind.features, kind.outputs
        limits = np.repeat([1e9, np.inf], [n * d, n * q])
        problem = dt.Problem(dt.Mip(cost=np.zeros(n * (d + q)), lower=-limits, upper=limits))
        outputs = n * d + np.arange(n * q).reshape(n, q)
        said = predictor.describe(X)
        block = Block("net", predictor, said, np.arange(n * d).reshape(n, d), outputs, False, 0.0, 0.0)
        problem = problem.derived(problem.mip, (block,))
        x = problem.predict(np.concatenate([X.ravel(), np.zeros(n * q)]))
        allowed = Checker(problem).allowance(x)[0][outputs]
        halves = [predictor.predict(X[:3]), predictor.predict(X[3:])]
        one_by_one = [predictor.predict(X[i : i + 1]) for i in range(n)]
        backwards = predictor.predict(X[::-1])[::-1]
        for said in (np.concatenate(halves), np.concatenate(one_by_one), backwards):
            assert np.all(np.abs(said - x[outputs]) <= allowed)
        x[outputs] = np.concatenate(one_by_one)
        assert dt.check(problem, x).within()

    def test_the_copy_says_the_same_and_its_gradient_is_a_difference(self, kind, only_read):
        (_, predictor), X = only_read, kind.points()
        forward = predictor.snapshot("cpu")
        values, slope, weights = slope_of(forward, X)
        assert values.dtype == torch.float64
        assert apart(values.numpy(), predictor.predict(X)) <= kind.close
        wrong = np.zeros(len(X), dtype=bool)
        for j, spread in enumerate(X.std(axis=0)):
            step = 1e-6 * spread * np.eye(kind.features)[j]
            with torch.no_grad():
                rise = (forward(torch.tensor(X + step)) - forward(torch.tensor(X - step))) @ weights
            rise = rise.numpy() / (2.0 * step[j])
            wrong |= np.abs(slope[:, j] - rise) > 1e-5 * np.maximum(1.0 / spread, np.abs(rise))
        assert wrong.sum() <= len(X) // 50  # of many points, one may lie at a kink

    def test_what_it_says_of_itself_is_true(self, kind, only_read):
        (_, predictor), X = only_read, kind.points()
        description = predictor.describe(X)
        assert isinstance(predictor, register.Predictor)
        assert (description.name, description.device) == (kind.called, kind.device)
        assert description.is_float64 == kind.is_float64
        assert description.has_float64_copy == kind.has_float64_copy
        assert description.features in (None, kind.features) and description.outputs in (None, kind.outputs)
        assert description == predictor.describe(X)
        error = apart(predictor.snapshot("cpu")(torch.tensor(X)).detach().numpy(), predictor.predict(X))
        assert error <= DOUBLE if description.is_float64 else error > 1e-13  # a lower precision shows
        assert description.smooth == (description.smooth if kind.smooth is None else kind.smooth)
        assert kind.sigmoid is None or description.ends_in_sigmoid is kind.sigmoid

    def test_the_owner_gets_it_back_as_it_was(self, kind, tmp_path):
        owner, X = kind.make(tmp_path), kind.points()
        before, seen = kind.state(owner), X.copy()
        problem = tied(kind, owner, X)
        predictor = problem.blocks[0].predictor
        predictor.predict(X)
        slope_of(predictor.snapshot("cpu"), X)
        if kind.layers:
            problem.blocks[0].description.layers()
        # twins are solved below
        if isinstance(kind, (Torch, Keras)) and not (kind.is_float64 or kind in TWINS):
            dt.solve(problem, dt.DualDecomposition(iterations=1), log=False)
        assert kind.state(owner) == before
        assert np.array_equal(X, seen)

    def test_a_copy_stays_and_predict_follows_the_owner(self, kind, tmp_path):
        owner, X = kind.make(tmp_path), kind.points()
        predictor, u = as_predictor(owner), torch.tensor(X)
        held, before = predictor.snapshot("cpu"), predictor.predict(X)
        copied = held(u).detach().clone()
        state = kind.state(owner)
        kind.change(owner)
        assert kind.state(owner) != state
        now = kind.answer(owner, X)
        assert apart(now, before) > 1e-3
        said = predictor.predict(X)
        assert apart(said, now if kind.follows else before) <= kind.close
        assert torch.equal(held(u), copied) == kind.freezes
        assert apart(predictor.snapshot("cpu")(u).detach().numpy(), said) <= kind.close

    def test_layers_compute_the_same(self, kind, only_read):
        (_, predictor), X = only_read, kind.points()
        layers = predictor.describe(X).layers
        if kind.layers:
            assert apart(evaluate(layers(), X), predictor.predict(X)) <= max(kind.close, 1e-9)
        elif layers is not None:
            with pytest.raises(dt.UnsupportedError, match="cannot be written out"):
                layers()


def price(owner):
    """min y + 0.3 (x0 + x1 + x2) over x in {0..3}^3 with x0 + x1 + x2 >= 3, y = owner(x)."""
    mip = dt.Mip(
        cost=[0.3, 0.3, 0.3, 1.0],
        A=[[1.0, 1.0, 1.0, 0.0]],
        row_lower=3.0,
        row_upper=np.inf,
        lower=[0.0, 0.0, 0.0, -np.inf],
        upper=[3.0, 3.0, 3.0, np.inf],
        integer=[True, True, True, False],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(owner, [0, 1, 2], [3])
    return problem


BEST = min(
    0.3 * sum(x) + float(twin([x])[0, 0]) for x in itertools.product(range(4), repeat=3) if sum(x) >= 3
)


@pytest.mark.parametrize("method", ["auto", "big-m"])
@pytest.mark.parametrize("kind", TWINS, ids=str)
def test_every_kind_is_solved_to_the_same_enumerated_optimum(kind, method, tmp_path):
    owner = kind.make(tmp_path)
    before, problem = kind.state(owner), price(owner)
    if method == "big-m" and not kind.layers:
        with pytest.raises(dt.UnsupportedError):
            dt.solve(problem, method, log=False)
        return
    result = dt.solve(problem, method, log=False, time_limit=60.0)
    # what float32 may round is taken off SCIP's bound, which then does not meet the objective any more
    rounds = method == "big-m" and not problem.blocks[0].description.is_float64
    assert result.status == "optimal" or (rounds and result.status == "feasible")
    assert result.objective == pytest.approx(BEST, abs=1e-5)
    assert dt.check(problem, result.x).within()
    assert kind.state(owner) == before


def test_old_style_weight_norm_can_be_copied():
    torch.manual_seed(0)
    with pytest.warns(FutureWarning):
        net = nn.Sequential(nn.utils.weight_norm(nn.Linear(nets.FEATURES, 4)), nn.ReLU(), nn.Linear(4, 1))
    net(torch.zeros(2, nets.FEATURES))
    predictor = as_predictor(net)
    X = points()
    assert np.allclose(
        predictor.snapshot("cpu")(torch.tensor(X)).detach().numpy(), predictor.predict(X), atol=1e-5
    )


def test_a_module_that_cannot_be_copied_is_refused_with_the_reason():
    class Locked(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 1)

        def __deepcopy__(self, memo):
            raise RuntimeError("it holds a lock")

        def forward(self, x):
            return self.inner(x)

    problem = dt.Problem(dt.Mip(cost=[0.0, 0.0, 1.0], lower=-1.0, upper=1.0))
    with pytest.raises(dt.PredictorError, match="Locked cannot be copied.*it holds a lock"):
        problem.add_predictor(Locked(), [0, 1], [2])


def test_a_module_without_parameters():
    class Sum(nn.Module):
        def forward(self, x):
            return x.sum(dim=1)

    predictor = as_predictor(Sum())
    assert predictor.predict(points()).shape == (7, 1)
    assert predictor.describe(points()).is_float64


def bend(X):
    """Two outputs, one of them kinked."""
    return np.column_stack([np.sin(X[:, 0]) * X[:, 1], np.maximum(X[:, 2], 0.3 * X[:, 3]) + X[:, 4]])


class TestCallables:
    def test_one_number_per_row_is_a_column(self):
        assert as_predictor(lambda X: X[:, 0]).predict(points()).shape == (7, 1)

    def test_its_gradient_is_right(self):
        X = points()
        u = torch.tensor(X, requires_grad=True)
        values = as_predictor(bend).snapshot("cpu")(u)
        (slope,) = torch.autograd.grad(3.0 * values[:, 0].sum() + values[:, 1].sum(), u)
        exact = np.zeros_like(X)
        exact[:, 0] = 3 * np.cos(X[:, 0]) * X[:, 1]
        exact[:, 1] = 3 * np.sin(X[:, 0])
        first = X[:, 2] > 0.3 * X[:, 3]
        exact[:, 2], exact[:, 3], exact[:, 4] = first, 0.3 * ~first, 1.0
        assert np.allclose(slope.numpy(), exact, atol=1e-6)

    def test_one_gradient_is_one_call(self):
        calls = []

        def counted(X):
            calls.append(len(X))
            return X.sum(axis=1)

        u = torch.tensor(points(), requires_grad=True)
        torch.autograd.grad(as_predictor(counted).snapshot("cpu")(u).sum(), u)
        assert calls == [7, 2 * 7 * nets.FEATURES]

    def test_it_cannot_change_the_solver_s_arrays(self):
        def rude(X):
            X[:] = 0.0
            return X.sum(axis=1)

        X = points()
        as_predictor(rude).predict(X)
        assert np.array_equal(X, points())


def test_a_predictor_of_the_users_own_is_taken_as_it_is():
    mine = Whole(Recipe())
    assert as_predictor(mine) is mine
