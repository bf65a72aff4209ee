"""Values of leaves, whatever their multipliers, against the networks at points of the leaves."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.certificates.checker import leaf_values, planes
from dovetail.certificates.checker.region import Boxes
from dovetail.certificates.proof import Leaves
from tests.certificates.reference import network, part_values, problem_of
from tests.conftest import sample


def random_boxes(values, rng, count):
    lower = np.where(np.isfinite(values.lower), values.lower, -60.0)
    upper = np.where(np.isfinite(values.upper), values.upper, 60.0)
    at = values.variables
    low, high = np.tile(lower, (count, 1)), np.tile(upper, (count, 1))
    ends = np.sort(rng.uniform(lower[at], upper[at], (2, count, at.size)), axis=0)
    shrink = 10.0 ** -rng.integers(0, 5, (count, 1))  # small ones, on which values are close to the truth
    low[:, at], high[:, at] = ends[0], ends[0] + shrink * (ends[1] - ends[0])
    whole = values.integer
    low[:, whole], high[:, whole] = np.floor(low[:, whole]), np.ceil(high[:, whole])
    return Boxes(low, high)


def random_leaves(values, rng, count):
    joint, size = values.joint, float(rng.choice([0.0, 0.3, 3.0]))
    return Leaves(
        np.ones(count),
        rng.normal(0, size, (count, values.rows.size)),
        rng.normal(0, size, (count, joint.graph.outputs)),
        rng.normal(0, size, (count, joint.classes.size)),
        rng.uniform(-0.5, 1.5, (count, values.neurons)),
        rng.normal(0, 0.1 * size, (count, values.neurons)),
    )


def points_in(problem, box, k, rng, count=300):
    """Points of a box that the problem's rows accept, and that lie within it with their outputs."""
    mip = problem.mip
    points = rng.uniform(box.lower[k], box.upper[k], (count, mip.n_columns))
    points[:, mip.integer] = np.round(points[:, mip.integer])
    for stage in problem.stages:
        for block, samples in stage:
            for i in samples:
                values = block.predictor.predict(points[:, block.inputs[i]])
                points[:, block.outputs[i]] = block.decode(values)
    activity = points @ mip.A.toarray().T
    good = np.all((activity >= mip.row_lower) & (activity <= mip.row_upper), axis=1)
    good &= np.all((points >= box.lower[k]) & (points <= box.upper[k]), axis=1)
    return points[good]


def above(problem, seed, boxes=12, **options):
    """By how much some value is above a point of its leaf, at most; and how many points were seen."""
    rng = np.random.default_rng(seed)
    values = part_values(problem, **options)
    box, leaves = random_boxes(values, rng, boxes), random_leaves(values, rng, boxes)
    found = values.values(box, leaves).value
    worst, seen = -np.inf, 0
    for k in range(boxes):
        points = points_in(problem, box, k, rng)
        seen += len(points)
        if len(points):
            worst = max(worst, found[k] - float((points @ problem.mip.minimised().cost).min()))
    return worst, seen


def chained(seed, dtype=torch.float64):
    """Two networks, one of which reads the other's output, and a class that reads both."""
    mip = dt.Mip(
        cost=[0.1, -0.2, 1.0, -1.0, 2.0],
        A=[[1.0, 0.0, 0.5, 0.0, -1.0]],
        row_lower=[-3.0],
        row_upper=[3.0],
        lower=[-1.0, -1.0, -np.inf, -np.inf, 0.0],
        upper=[1.0, 1.0, np.inf, np.inf, 1.0],
        integer=[False, False, False, False, True],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(network(seed, dtype=dtype), [0, 1], [2], name="first")
    problem.add_predictor(network(seed + 100, dtype=dtype), [2, 1], [3], name="second")
    problem.add_predictor(
        network(seed + 200, dtype=dtype), [2, 0], [4], name="class", output_type="classification"
    )
    return problem


def several_classes(seed):
    mip = dt.Mip(
        cost=[0.1, -0.2, 1.0, -1.0, 2.0],
        lower=[-1.0, -1.0, 0.0, 0.0, 0.0],
        upper=1.0,
        integer=[False] * 2 + [True] * 3,
    )
    problem = dt.Problem(mip)
    net = network(seed, outputs=3)
    problem.add_predictor(net, [0, 1], [2, 3, 4], name="class", output_type="classification")
    return problem


def smooth(seed, function):
    torch.manual_seed(seed)
    return problem_of(nn.Sequential(nn.Linear(2, 5), function, nn.Linear(5, 1)).double())


def test_a_leaf_proves_the_same_alone_as_among_others():
    """Certificates are made in other batches than they are checked in; each leaf has to hold by itself."""
    values, rng = part_values(problem_of(network(4, width=8))), np.random.default_rng(4)
    boxes, leaves = random_boxes(values, rng, 40), random_leaves(values, rng, 40)
    together = values.values(boxes, leaves).value
    for k in range(0, 40, 5):
        one = np.array([k])
        alone = values.values(boxes.take(one), leaf_values.take(leaves, one)).value
        assert alone == pytest.approx(together[one], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", sample(range(6), 2))
@pytest.mark.parametrize("make", [lambda s: problem_of(network(s)), chained, several_classes])
def test_no_point_of_a_leaf_is_below_its_value(make, seed):
    worst, seen = above(make(seed), seed)
    assert seen > 0
    assert worst <= 1e-12


@pytest.mark.parametrize("function", [nn.Tanh(), nn.Sigmoid(), nn.Softplus()])
def test_smooth_networks(function):
    worst, seen = above(smooth(1, function), 1)
    assert seen > 0
    assert worst <= 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_float32_networks_may_be_off_by_their_rounding(seed):
    worst, seen = above(chained(seed, torch.float32), seed)
    assert seen > 0
    assert worst <= 1e-12


def test_small_boxes_have_values_near_the_truth():
    problem = problem_of(network(5))
    values = part_values(problem)
    x = problem.predict(np.array([0.2, 0.3, 0.0]))
    lower, upper = x - 1e-4, x + 1e-4
    lower[2], upper[2] = -50.0, 50.0
    box = Boxes(lower[None], upper[None])
    found = values.values(box, Leaves(np.ones(1), np.zeros((1, 1)))).value[0]
    assert found == pytest.approx(problem.mip.objective(x), abs=1e-3)
    assert found <= problem.mip.objective(x)


@pytest.mark.parametrize("fault", ["lines", "ranges", "classes", "rows"])
def test_planted_faults_are_seen(fault, monkeypatch):
    """The tests above would not be worth much if they let these pass."""
    if fault == "lines":
        own = planes.lines

        def off(kind, lower, upper):
            found = own(kind, lower, upper)
            return replace(found, below_offset=found.below_offset + 1e-3)

        monkeypatch.setattr(planes, "lines", off)
    elif fault == "ranges":
        own_interval = planes.Planes._interval

        def narrow(self, place, ranges):
            low, high = own_interval(self, place, ranges)
            return low, low + 0.9 * (high - low)

        monkeypatch.setattr(planes.Planes, "_interval", narrow)
    elif fault == "classes":
        own_decided = leaf_values.ClassOutputs.decided

        def always(self, boxes, ranges):
            found = own_decided(self, boxes, ranges)
            upper = np.where(self.is_class, found.upper + 9.0, found.upper)
            return replace(found, lower=np.where(self.is_class, upper, found.lower), upper=upper)

        monkeypatch.setattr(leaf_values.ClassOutputs, "is_class", [False] * 4 + [True], raising=False)
        monkeypatch.setattr(leaf_values.ClassOutputs, "decided", always)
    else:
        own_rows = leaf_values.PartValues._coefficients

        def dearer(self, leaves):
            rows, constant, off = own_rows(self, leaves)
            return rows, constant + 1e-2, off

        monkeypatch.setattr(leaf_values.PartValues, "_coefficients", dearer)
    assert max(above(chained(seed), seed, 40)[0] for seed in range(4)) > 1e-9
