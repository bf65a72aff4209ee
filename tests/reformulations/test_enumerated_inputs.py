"""Binaries for combinations of integer inputs: where one of them is 1, the mixture is the network."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.bounds.box import propagate
from dovetail.core.predictor import Predictor, as_predictor
from dovetail.reformulations.enumerated_inputs import EnumeratedInputs, EnumeratedPredictor, grid
from dovetail.reformulations.reformulated import Reformulated
from tests.conftest import FULL, sample
from tests.contexts import breach
from tests.small import random_mlp

ROUNDS = 10 if FULL else 1


def network(kind, features, seed, dtype=torch.float64):
    """A network for each way its outputs are read, and how many outputs it has."""
    outputs = {"regression": 2, "one logit": 1, "three classes": 3, "sigmoid end": 1}[kind]
    net = random_mlp(features, outputs, seed=seed, dtype=dtype)
    return (nn.Sequential(net, nn.Sigmoid()) if kind == "sigmoid end" else net), outputs


KINDS = ("regression", "one logit", "three classes", "sigmoid end")


def problem_of(kind, seed, samples=3, dtype=torch.float64):
    """Samples of (integer 0..2, real, integer -1..1, real), integers under a common row; then outputs.

    Outputs have no bounds and no rows but that of the first one, which is loose: enough is feasible.
    """
    net, q = network(kind, 4, seed, dtype)
    d, classifies = 4, kind != "regression"
    inputs = np.arange(samples * d).reshape(samples, d)
    outputs = samples * d + np.arange(samples * q).reshape(samples, q)
    columns = samples * (d + q)
    whole = inputs[:, [0, 2]].ravel()
    A = np.zeros((2, columns))
    A[0, whole] = 1.0
    A[1, inputs[:, 1]] = 1.0
    lower = np.concatenate([np.tile([0.0, -1.0, -1.0, -0.5], samples), np.full(samples * q, -np.inf)])
    upper = np.concatenate([np.tile([2.0, 1.0, 1.0, 0.5], samples), np.full(samples * q, np.inf)])
    if classifies:
        lower[outputs], upper[outputs] = 0.0, 1.0
    integer = np.zeros(columns, dtype=bool)
    integer[whole] = True
    rng = np.random.default_rng(seed)
    mip = dt.Mip(
        cost=rng.normal(size=columns),
        A=A,
        row_lower=-np.inf,
        row_upper=[3.0, 1.5],
        lower=lower,
        upper=upper,
        integer=integer,
    )
    problem = dt.Problem(mip)
    problem.add_predictor(
        net, inputs, outputs, output_type="classification" if classifies else "regression", name="net"
    )
    return problem


def feasible_points(problem, seed, count=20 if FULL else 8):
    """Random feasible points, with outputs as the networks say."""
    rng, mip = np.random.default_rng(seed), problem.mip
    found = []
    for _ in range(200 * count):
        x = np.zeros(mip.n_columns)
        free = np.setdiff1d(np.arange(mip.n_columns), problem.outputs)
        x[free] = rng.uniform(mip.lower[free], mip.upper[free])
        x = problem.predict(np.where(mip.integer, np.round(x), x))
        if breach(mip, x) <= 1e-9:
            found.append(x)
        if len(found) == count:
            return found
    raise AssertionError("too few feasible points")


def enumerated(problem, box):
    return EnumeratedInputs().apply(Reformulated.start(problem, box))


def extended_of(problem):
    return enumerated(problem, propagate(problem.mip))


# --- the mixture -------------------------------------------------------------------------------------

POINTS = grid(np.arange(2), np.array([0.0, -1.0]), np.array([2.0, 1.0]), 32)
PLACES = np.array([0, 2])


def rows_of(rng, n):
    """Random combinations and reals: rows of the mixture, and rows of the network."""
    which, real = rng.integers(len(POINTS), size=n), rng.normal(size=(n, 2))
    whole = POINTS[which]
    rows = np.column_stack([whole[:, 0], real[:, 0], whole[:, 1], real[:, 1]])
    return which, np.column_stack([np.eye(len(POINTS))[which], real]), rows


@pytest.mark.parametrize("dtype", sample([torch.float32, torch.float64]), ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(ROUNDS))
class TestMixture:
    def made(self, kind, seed, dtype):
        net, q = network(kind, 4, seed, dtype)
        predictor = as_predictor(net)
        return predictor, EnumeratedPredictor(predictor, POINTS, PLACES, 4), q

    def test_it_is_the_network_where_one_theta_is_1(self, kind, seed, dtype):
        predictor, mixture, q = self.made(kind, seed, dtype)
        _, mixed, rows = rows_of(np.random.default_rng(seed), 30)
        said = mixture.predict(mixed)
        assert said.shape == (30, q)
        # float32 sums depend on the size of the batch
        assert said == pytest.approx(predictor.predict(rows), abs=1e-12 if dtype == torch.float64 else 1e-5)
        copied = mixture.snapshot("cpu")(torch.tensor(mixed)).numpy()
        assert copied == pytest.approx(predictor.snapshot("cpu")(torch.tensor(rows)).numpy(), abs=1e-12)
        assert mixture.predict(mixed[:0]).shape == (0, q)

    def test_its_slope_along_theta_is_what_the_network_says_of_the_combination(self, kind, seed, dtype):
        predictor, mixture, q = self.made(kind, seed, dtype)
        rng = np.random.default_rng(seed)
        _, mixed, _ = rows_of(rng, 5)
        k, weights = len(POINTS), rng.normal(size=q)
        mixed[:, :k] = rng.dirichlet(np.ones(k), size=5)  # anywhere between the combinations
        forward, u = mixture.snapshot("cpu"), torch.tensor(mixed, requires_grad=True)
        (slope,) = torch.autograd.grad((forward(u) @ torch.tensor(weights)).sum(), u)
        for c, (first, second) in enumerate(POINTS):
            rows = np.column_stack([np.full(5, first), mixed[:, k], np.full(5, second), mixed[:, k + 1]])
            with torch.no_grad():
                said = predictor.snapshot("cpu")(torch.tensor(rows)).numpy() @ weights
                step = torch.zeros(u.shape[1], dtype=torch.float64)
                step[c] = 0.1  # it is linear: any length will do
                rise = ((forward(u + step) - forward(u - step)) / 0.2).numpy() @ weights
            assert slope[:, c].numpy() == pytest.approx(said, abs=1e-10)
            assert rise == pytest.approx(said, abs=1e-10)

    def test_its_slope_along_reals_is_that_of_the_network(self, kind, seed, dtype):
        predictor, mixture, _ = self.made(kind, seed, dtype)
        _, mixed, rows = rows_of(np.random.default_rng(seed), 10)
        slopes = []
        for one, at in ((mixture, mixed), (predictor, rows)):
            u = torch.tensor(at, requires_grad=True)
            slopes.append(torch.autograd.grad(one.snapshot("cpu")(u).sum(), u)[0].numpy())
        assert slopes[0][:, len(POINTS) :] == pytest.approx(slopes[1][:, [1, 3]], abs=1e-10)

    def test_it_says_of_itself_what_the_network_says(self, kind, seed, dtype):
        predictor, mixture, _ = self.made(kind, seed, dtype)
        assert isinstance(mixture, Predictor)
        _, mixed, rows = rows_of(np.random.default_rng(seed), 3)
        said, inner = mixture.describe(mixed), predictor.describe(rows)
        assert said == replace(inner, features=mixed.shape[1])
        assert said.layers is None and said.program is None


# --- the problem -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", sample([torch.float32, torch.float64]), ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(ROUNDS))
class TestLiftedPoints:
    def test_there_and_back(self, kind, seed, dtype):
        problem = problem_of(kind, seed, dtype=dtype)
        reformulated = extended_of(problem)
        for x in feasible_points(problem, seed):
            z = reformulated.lift(x)
            assert z.size == reformulated.problem.mip.n_columns
            assert np.array_equal(reformulated.restrict(z), x)
            assert reformulated.problem.mip.objective(z) == pytest.approx(problem.mip.objective(x))

    def test_linking_rows_hold_and_one_theta_is_1(self, kind, seed, dtype):
        problem = problem_of(kind, seed, dtype=dtype)
        reformulated = extended_of(problem)
        mip, first = reformulated.problem.mip, problem.mip.n_columns
        assert mip.integer[first:].all()
        assert np.all(mip.lower[first:] == 0.0) and np.all(mip.upper[first:] == 1.0)
        for x in feasible_points(problem, seed):
            z = reformulated.lift(x)
            assert breach(mip, z) == pytest.approx(breach(problem.mip, x), abs=1e-12)
            assert np.array_equal(z[first:].reshape(3, -1).sum(axis=1), np.ones(3))
            # another combination is another integer: no theta can be exchanged
            z[first : first + 2] = z[first : first + 2][::-1]
            if not np.array_equal(z, reformulated.lift(x)):
                assert breach(mip, z) >= 1.0 - 1e-9

    def test_the_check_says_the_same(self, kind, seed, dtype):
        problem = problem_of(kind, seed, dtype=dtype)
        reformulated = extended_of(problem)
        for x in feasible_points(problem, seed):
            own, lifted = dt.check(problem, x), dt.check(reformulated.problem, reformulated.lift(x))
            assert own.within() and lifted.within()
            close = 1e-12 if dtype == torch.float64 else 1e-5  # one row in other batches: other last digits
            assert lifted.prediction.amount == pytest.approx(own.prediction.amount, abs=close)
            assert lifted.precision.amount == pytest.approx(own.precision.amount, abs=close)
            if dtype == torch.float64:
                assert lifted.precision.amount == own.precision.amount == 0.0
            wrong = x.copy()
            wrong[problem.outputs[0]] += 1.0
            own, lifted = dt.check(problem, wrong), dt.check(reformulated.problem, reformulated.lift(wrong))
            assert lifted.prediction.amount == pytest.approx(own.prediction.amount, abs=close)
            assert own.prediction.amount > 0.1


def test_samples_of_one_kind_are_one_block():
    """Same places and same values together, in the order they came; the rest in a block of its own."""
    problem = problem_of("regression", 0, samples=4)
    lower, upper = problem.mip.lower.copy(), problem.mip.upper.copy()
    upper[4] = 3.0  # the second sample chooses among more
    lower[8] = upper[8] = 1.0  # the third has one integer left: three combinations of another place
    lower[14] = upper[14] = 0.0
    lower[12] = upper[12] = 0.0  # the fourth has none
    mip = replace(problem.mip, lower=lower, upper=upper)
    reformulated = enumerated(problem.derived(mip, problem.blocks), propagate(mip))
    blocks = reformulated.problem.blocks
    assert [block.name for block in blocks] == ["net:0", "net:1", "net:2", "net:3"]
    assert [block.inputs.shape for block in blocks] == [(1, 9 + 2), (1, 12 + 2), (1, 3 + 3), (1, 4)]
    assert blocks[-1].predictor is problem.blocks[0].predictor
    same = extended_of(problem_of("regression", 0, samples=4)).problem.blocks
    assert [block.inputs.shape for block in same] == [(4, 9 + 2)]
    assert np.array_equal(same[0].outputs, problem.blocks[0].outputs)
    for block in (*blocks, *same):
        assert block.threshold == problem.blocks[0].threshold


def single(integers, levels, *, reals=1, samples=1):
    """Samples of so many integers 0..levels-1 and reals, one output each."""
    d = integers + reals
    inputs = np.arange(samples * d).reshape(samples, d)
    outputs = samples * d + np.arange(samples)[:, None]
    columns = samples * (d + 1)
    upper, integer = np.ones(columns), np.zeros(columns, dtype=bool)
    upper[inputs[:, :integers]], integer[inputs[:, :integers]] = levels - 1, True
    lower = np.zeros(columns)
    lower[outputs], upper[outputs] = -np.inf, np.inf
    mip = dt.Mip(cost=np.ones(columns), lower=lower, upper=upper, integer=integer)
    problem = dt.Problem(mip)
    problem.add_predictor(random_mlp(d), inputs, outputs)
    return problem


def test_an_integer_that_is_read_twice_leaves_its_sample_alone():
    mip = dt.Mip(
        cost=np.zeros(5), lower=[0, 0, 0, -np.inf, -np.inf], upper=[3, 3, 1, np.inf, np.inf],
        integer=[True, True, False, False, False],
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(random_mlp(3), [[0, 0, 2], [1, 2, 2]], [[3], [4]])
    reformulated = extended_of(problem)
    left, chosen = reformulated.problem.blocks
    assert left.predictor is problem.blocks[0].predictor
    assert left.inputs.tolist() == [[0, 0, 2]]
    assert chosen.outputs.tolist() == [[4]]  # a real that is read twice does not matter
    x = problem.predict(np.array([1.0, 2.0, 0.3, 0.0, 0.0]))
    assert reformulated.problem.predict(reformulated.lift(x)) == pytest.approx(
        reformulated.lift(x), abs=1e-12
    )


def test_without_integers_nothing_is_done():
    assert extended_of(single(0, 2, reals=2)) is None
    endless = single(1, 4)
    mip = replace(endless.mip, upper=np.full(3, np.inf))
    assert extended_of(endless.derived(mip, endless.blocks)) is None


# --- the grid ----------------------------------------------------------------------------------------
