"""Every wanted value is in one group, and groups change nothing but the order of work."""

import numpy as np
import pytest
import torch

from dovetail.bounds.planes import network_planes
from dovetail.bounds.planes.network_planes import NetworkPlanes
from tests.bounds.planes.test_network_planes import case


@pytest.mark.parametrize("numbers", [1, 64, 500, 10**6])
def test_each_value_once(monkeypatch, numbers):
    monkeypatch.setattr(network_planes, "NUMBERS", numbers)
    rng = np.random.default_rng(0)
    asked = torch.tensor(rng.uniform(size=(40, 7)) < rng.uniform(size=(40, 1)) ** 3)
    asked[:2], asked[2:4] = False, True
    seen = torch.zeros_like(asked, dtype=torch.int64)
    sets = torch.arange(40)
    for group in network_planes.groups(asked, 5):
        of = sets[group.sets]
        seen[of[:, None].expand_as(group.values), group.values] += group.wanted.to(torch.int64)
        assert bool((group.wanted == asked[of].gather(1, group.values)).all())
        assert int(group.wanted.sum(1).max()) == group.values.shape[1], "nothing is filled up in vain"
        assert 2 * group.values.numel() * 5 <= numbers or group.values.numel() == 1
    assert torch.equal(seen, asked.to(torch.int64))


def test_nothing_wanted():
    assert not list(network_planes.groups(torch.zeros(3, 4, dtype=torch.bool), 5))
    assert not list(network_planes.groups(torch.zeros(0, 4, dtype=torch.bool), 5))


@pytest.mark.parametrize("seed", range(3))
def test_ranges_are_the_same_in_any_groups(monkeypatch, seed):
    graph, box, _ = case(seed)
    network = NetworkPlanes(graph)
    together = network.ranges(box)
    monkeypatch.setattr(network_planes, "NUMBERS", 300)
    apart = network.ranges(box)
    for one, other in zip(together.lower + together.upper, apart.lower + apart.upper, strict=True):
        assert torch.allclose(one, other, rtol=1e-12, atol=1e-12)
