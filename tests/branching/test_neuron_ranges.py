"""Ranges of neurons by branching: against an LP for every pattern of signs, and as the start of a search."""

import copy

import numpy as np
import pytest
import torch

from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.branching.neuron_ranges import CLOSE, known_neurons
from dovetail.branching.sign_search import SearchOptions, SignSearch
from dovetail.networks.graph import Affine, Graph, GraphStep
from dovetail.run.budget import Budget
from tests.branching.closed_set_instance import KINDS, Instance, optimum_of
from tests.conftest import FULL, sample
from tests.networks.graph_values import vectors as graph_vectors


def cut_to(instance, layer, h, way):
    """The network that ends with `way` times what neuron h of a layer reads."""
    cut = copy.copy(instance)
    cut.weights = [*instance.weights[:layer], way * instance.weights[layer][h : h + 1]]
    cut.biases = [*instance.biases[:layer], way * instance.biases[layer][h : h + 1]]
    cut.costs, cut.sign = np.zeros_like(instance.costs), 1.0
    return cut


@pytest.mark.parametrize("kind", KINDS if FULL else ("simplex",))
def test_ranges_of_a_second_layer_are_the_true_ones(kind):
    instance = Instance(4, kind, hidden=(4, 2), count=2)
    targets = instance.targets()
    known = known_neurons(targets.planes, targets.domain, Budget(60), 10**6)
    planes = targets.planes.ranges(targets.domain)
    for k, h in np.ndindex(2, 2):
        true = cut_to(instance, 1, h, 1.0).optimum(k), -cut_to(instance, 1, h, -1.0).optimum(k)
        room = 1.5 * CLOSE * float(planes.upper[3][k, h] - planes.lower[3][k, h])
        assert true[0] - room <= known.lower[k, 4 + h] <= true[0] + 1e-7
        assert true[1] - 1e-7 <= known.upper[k, 4 + h] <= true[1] + room


def test_points_of_three_layers_lie_within():
    instance = Instance(7, "simplex", hidden=(6, 6, 4), count=1)
    targets = instance.targets()
    known = known_neurons(targets.planes, targets.domain, Budget(60), 10**6)
    rng = np.random.default_rng(0)
    t = rng.dirichlet(np.full(4, 0.4), 3000) * instance.most[0]
    t = t[(t <= instance.limit[0]).all(axis=1)]
    vectors = graph_vectors(targets.planes.graph, instance.origin[0] + t)
    read = np.concatenate([vectors[place] for place in (1, 3, 5)], axis=1)
    assert np.all(read >= known.lower[0].numpy() - 1e-9)
    assert np.all(read <= known.upper[0].numpy() + 1e-9)
    planes = targets.planes.ranges(targets.domain)
    wide = torch.cat([planes.upper[place] - planes.lower[place] for place in (3, 5)], dim=1)
    assert torch.all((known.upper - known.lower)[:, 6:] <= wide + 1e-9)
    assert (known.upper - known.lower)[:, 6:].sum() < 0.9 * wide.sum()


@pytest.mark.parametrize("seed", sample(range(4)))
def test_a_search_that_knows_them_ends_at_the_optimum(seed):
    true, targets = optimum_of(seed), Instance(seed, KINDS[seed]).targets()
    known = known_neurons(targets.planes, targets.domain, Budget(60), 10**6)
    search = SignSearch(targets, SearchOptions(batch=8), known)
    assert search.run(Budget(60)) == "closed"
    assert true - 1e-5 <= search.lower[0] <= true + 1e-7


def test_of_other_graphs_and_without_a_node_little_is_said():
    """A residual network is no chain; without a search a layer is as planes have it."""
    targets = Instance(1, "box", hidden=(3, 3), inputs=3).targets()
    steps = list(targets.planes.graph.steps)
    last = steps[-1].operation
    both = Affine((last.weights[0], last.weights[0]), last.bias)
    steps[-1] = GraphStep(both, (4, 2), steps[-1].size)
    residual = NetworkPlanes(Graph(3, tuple(steps)))
    known = known_neurons(residual, targets.domain, Budget(60), 10**6)
    assert torch.all(known.lower == -torch.inf)
    assert known.pairs is None
    late = known_neurons(targets.planes, targets.domain, Budget(60), 0)
    planes = targets.planes.ranges(targets.domain)
    assert torch.all(late.lower[:, 3:] >= planes.lower[3] - 1e-9)
    assert late.pairs is not None
