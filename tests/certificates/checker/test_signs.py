"""Leaves that decide signs of neurons, over boxes, sums and balls; slopes and multipliers as given."""

import itertools

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.certificates.checker.region import Boxes
from dovetail.certificates.checker.verification import verify
from dovetail.certificates.proof import Leaves, ProofTree
from tests.certificates.reference import certificate_of, graphs_of, network, part_values


def ball(seed, d=3):
    """The least output over an L1 ball around a centre: x = centre + up - down, sum of moves <= 1."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=d)
    A = np.zeros((d + 1, 3 * d + 1))
    for i in range(d):
        A[i, [i, d + i, 2 * d + i]] = 1.0, -1.0, 1.0
    A[d, d : 3 * d] = 1.0
    mip = dt.Mip(
        cost=np.append(np.zeros(3 * d), 1.0),
        A=A,
        row_lower=np.append(centre, -np.inf),
        row_upper=np.append(centre, 1.0),
        lower=np.concatenate([centre - 1.0, np.zeros(2 * d), [-100.0]]),
        upper=np.concatenate([centre + 1.0, np.ones(2 * d), [100.0]]),
    )
    problem = dt.Problem(mip)
    problem.add_predictor(network(seed, d), np.arange(d), [3 * d], name="net")
    defined = np.array([[i, i] for i in range(d)])
    return problem, {"defined": defined, "row": d}


def sampled(problem, d=3, count=4000):
    rng = np.random.default_rng(0)
    moves = rng.dirichlet(np.full(2 * d + 1, 0.4), count)[:, : 2 * d]
    mip = problem.mip
    points = np.zeros((count, mip.n_columns))
    points[:, d : 3 * d] = moves
    points[:, :d] = mip.row_lower[:d] + moves[:, :d] - moves[:, d:]
    points[:, -1] = problem.blocks[0].predictor.predict(points[:, :d])[:, 0]
    return points


def all_signs(neurons, total, rng):
    """A tree that decides these neurons one after the other, with random slopes and multipliers."""
    splits = 2 ** len(neurons) - 1
    depth = [int(np.log2(k + 1)) for k in range(splits)]
    variable = np.array([total + neurons[level] for level in depth])
    children = np.array([[2 * k + 1, 2 * k + 2] for k in range(splits)])
    children = np.where(children >= splits, splits - 1 - children, children)
    return variable, np.zeros(splits), children


@pytest.mark.parametrize("seed", range(5))
def test_signs_slopes_and_multipliers_are_sound(seed):
    problem, options = ball(seed)
    values = part_values(problem, **options)
    rng = np.random.default_rng(seed)
    points = sampled(problem)
    best = points[:, -1].min()
    variable, at, children = all_signs([0, 2, 5], problem.mip.n_columns, rng)
    leaves = Leaves(
        np.ones(8),
        np.zeros((8, values.rows.size)),
        slopes=rng.uniform(-0.5, 1.5, (8, values.neurons)),
        neurons=rng.normal(0, 0.3, (8, values.neurons)),
    )
    certificate = certificate_of(problem, ProofTree(variable, at, children, leaves), -100.0, **options)
    found = verify(problem, certificate, graphs_of(problem))
    assert found.holds
    endless = np.full(values.neurons, np.inf)
    boxes = Boxes(
        np.tile(np.append(values.lower, -endless), (8, 1)), np.tile(np.append(values.upper, endless), (8, 1))
    )
    three, decided = (
        values.lower.size + np.array([0, 2, 5]),
        np.array([*itertools.product((-1.0, 1.0), repeat=3)]),
    )
    boxes.lower[:, three] = np.where(decided > 0.0, 0.0, -np.inf)
    boxes.upper[:, three] = np.where(decided > 0.0, np.inf, 0.0)
    value = values.values(boxes, leaves).value
    assert value.min() <= best
    hidden = preactivations(problem, points)
    for k in range(8):
        inside = np.all(hidden[:, [0, 2, 5]] * decided[k] >= 0.0, axis=1)
        assert value[k] <= points[inside, -1].min(initial=np.inf)


def preactivations(problem, points):
    net = problem.blocks[0].predictor.module
    with torch.no_grad():
        first = net[0](torch.from_numpy(points[:, :3]))
        second = net[2](torch.relu(first))
    return torch.cat([first, second], 1).numpy()


def test_the_ball_gives_better_bounds_than_the_box():
    problem, options = ball(1)
    without = part_values(problem)
    with_ball = part_values(problem, **options)

    def root(values):
        rows = np.zeros((1, values.rows.size))
        return values.values(values.root, Leaves(np.ones(1), rows)).value[0]

    assert root(without) < root(with_ball) <= sampled(problem)[:, -1].min()


def test_a_row_that_defines_nothing_is_refused():
    problem, _ = ball(1)
    with pytest.raises(dt.UnsupportedError, match="does not determine"):
        part_values(problem, defined=np.array([[0, 3]]))
    with pytest.raises(dt.UnsupportedError, match="other columns"):
        part_values(output_row(problem), row=4)


def output_row(problem):
    mip = problem.mip
    A = np.vstack([mip.A.toarray(), np.eye(mip.n_columns)[-1]])
    other = dt.Mip(
        mip.cost, A, np.append(mip.row_lower, -5.0), np.append(mip.row_upper, 5.0), mip.lower, mip.upper
    )
    return problem.derived(other, problem.blocks)
