"""All networks as one graph: it computes what the problem predicts."""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.bounds.box import propagate
from dovetail.bounds.planes.domain import Boxes
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.core.errors import UnsupportedError
from dovetail.structure.boxes import reached_box
from dovetail.structure.networks import joint_network


def net(inputs, outputs, seed, dtype=torch.float64):
    torch.manual_seed(seed)
    layers = torch.nn.Linear(inputs, 6), torch.nn.ReLU(), torch.nn.Linear(6, outputs)
    return torch.nn.Sequential(*layers).to(dtype)


def chained_problem():
    """Two samples of one network, one that reads a value and a class of others, one column read twice."""
    mip = dt.Mip(np.zeros(9), lower=[*[-2.0] * 3, *[-np.inf] * 6], upper=[*[2.0] * 3, *[np.inf] * 6])
    problem = dt.Problem(mip)
    problem.add_predictor(net(2, 1, 0), [[0, 1], [2, 2]], [[3], [4]])
    problem.add_predictor(net(2, 1, 1), [0, 2], [5], output_type="classification", threshold=0.0)
    problem.add_predictor(net(3, 1, 2), [3, 5, 1], [6])
    problem.add_predictor(net(2, 2, 3), [6, 0], [7, 8])
    return problem


def joint_of(problem):
    """Within what its networks can give, and that box."""
    box = reached_box(problem, propagate(problem.mip))
    return joint_network(problem, box.lower, box.upper), box


def values_of(joint, x):
    """What the graph says at a point, each column by its own output."""
    inputs = np.append(x, np.zeros(joint.slack.size))[joint.inputs]
    point = torch.as_tensor(inputs)[None]
    ranges = NetworkPlanes(joint.graph).ranges(Boxes(point, point))
    low, high = ranges.lower[-1][0].numpy(), ranges.upper[-1][0].numpy()
    assert np.allclose(low, high, atol=1e-9)
    return {int(c): low[o] for g in joint.groups for c, o in zip(g.columns, g.outputs, strict=True)}


def test_it_computes_what_the_problem_predicts():
    problem = chained_problem()
    joint, box = joint_of(problem)
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = np.zeros(9)
        x[:3] = rng.uniform(-2.0, 2.0, 3)
        x = problem.predict(x)
        values = values_of(joint, x)
        assert all(abs(values[c] - x[c]) < 1e-9 for c in (3, 4, 6, 7, 8))
        assert (values[5] >= 0.0) == (x[5] == 1.0)
        assert np.all(box.lower <= x) and np.all(x <= box.upper)


def test_a_value_that_is_handed_on_has_a_slack_column():
    problem = chained_problem()
    joint, _ = joint_of(problem)
    assert joint.slack.size == 2  # columns 3 and 6; column 5, a class, is an input itself
    assert np.all(joint.slack > 0.0) and np.all(joint.slack < 1e-12)
    assert set(joint.inputs.tolist()) == {0, 1, 2, 5, 9, 10}


def test_what_is_not_known_is_named():
    problem = dt.Problem(dt.Mip([0.0, 1.0], lower=-1.0, upper=[1.0, 9.0]))
    problem.add_predictor(lambda X: X**2, [0], [1], name="square")
    with pytest.raises(UnsupportedError, match="square"):
        joint_network(problem, problem.mip.lower, problem.mip.upper)
    problem = dt.Problem(dt.Mip([0.0, 1.0], lower=-np.inf))
    problem.add_predictor(net(1, 1, 0), [0], [1], name="open")
    with pytest.raises(UnsupportedError, match="no bound"):
        joint_network(problem, problem.mip.lower, problem.mip.upper)
