"""What a sign says of other neurons: against an LP for each pair."""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from dovetail.branching import neuron_ranges as module
from dovetail.branching.neuron_ranges import sign_pairs
from dovetail.branching.sign_nodes import Nodes
from tests.branching.closed_set_instance import KINDS, Instance


def least(instance, k, along, i, side):
    """By an LP: the least of a linear function of the first layer where neuron i is on (0) or off (1)."""
    M = instance.weights[0] @ instance.directions
    c = instance.weights[0] @ instance.origin[k] + instance.biases[0]
    flip = -1.0 if side == 0 else 1.0
    rows, sides = [flip * M[i]], [-flip * c[i]]
    for limit, way in ((instance.most[k], 1.0), (instance.least[k], -1.0)):
        if np.isfinite(limit):
            rows.append(way * instance.row[k])
            sides.append(way * limit)
    bounds = [(0.0, u) for u in instance.limit[k]]
    found = linprog(along @ M, A_ub=np.array(rows), b_ub=np.array(sides), bounds=bounds)
    return found.fun + along @ c if found.success else np.inf


@pytest.mark.parametrize("kind", KINDS)
def test_every_pair_against_an_lp(kind):
    """Never more than is true, and nearly all of it; two sets, so that none takes the other's place."""
    instance = Instance(5, kind, hidden=(3, 2), count=2)
    targets = instance.targets()
    pairs = sign_pairs(targets.planes, targets.domain, 1)
    ranges = targets.planes.ranges(targets.domain)
    width = (ranges.upper[1] - ranges.lower[1]).numpy()
    gained = 0.0
    for k, side, i, h in np.ndindex(2, 2, 3, 3):
        low, high = float(pairs.lower[k, side, i, h]), float(pairs.upper[k, side, i, h])
        true = least(instance, k, np.eye(3)[h], i, side), -least(instance, k, -np.eye(3)[h], i, side)
        if np.isinf(true[0]):
            continue  # a sign that nothing has: anything may be said of it
        assert low <= true[0] + 1e-8
        assert high >= true[1] - 1e-8
        assert low >= true[0] - 0.05 * width[k, h]
        assert high <= true[1] + 0.05 * width[k, h]
        gained += width[k, h] - (high - low)
    assert gained > 0.0


def test_long_layers_have_no_table(monkeypatch):
    monkeypatch.setattr(module, "MOST_NEURONS", 3)
    targets = Instance(0, "box").targets()
    assert sign_pairs(targets.planes, targets.domain, 1) is None


def test_a_split_takes_what_its_side_says():
    """The rows of the right set, side and neuron; what was known better stays."""
    instance = Instance(2, "simplex", hidden=(4, 3), count=3)
    targets = instance.targets()
    pairs = sign_pairs(targets.planes, targets.domain, 1)
    nodes = Nodes(
        target=torch.tensor([2, 0]),
        bound=torch.zeros(2, dtype=torch.float64),
        lower=torch.full((2, 7), -50.0, dtype=torch.float64),
        upper=torch.full((2, 7), 50.0, dtype=torch.float64),
        sign=torch.tensor([[0, 1, 0, 0, 0, 0, 0], [0, 0, 0, -1, 0, 0, 0]], dtype=torch.int8),
        slope=torch.zeros(2, 7, dtype=torch.float64),
        multiplier=torch.zeros(2, 7, dtype=torch.float64),
        choice=torch.tensor([1, 3]),
        arriving=torch.zeros(2, dtype=torch.float64),
    )
    nodes.upper[0, 0] = -49.0
    found = pairs.applied(nodes)
    assert torch.equal(found.lower[0, :4], pairs.lower[2, 0, 1])
    assert torch.equal(found.lower[1, :4], pairs.lower[0, 1, 3])
    assert torch.equal(found.upper[1, :4], pairs.upper[0, 1, 3])
    assert found.upper[0, 0] == -49.0
    assert torch.all(found.lower[:, 4:] == -50.0)
