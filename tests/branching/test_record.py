"""What the tree leaves behind, looked at by the checker: against points that the tree never saw."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.certificates.checker.verification import verify
from dovetail.certificates.proof import Leaves
from dovetail.certifying.certify import certify
from tests.certificates.checker.test_leaf_values import chained, several_classes
from tests.certificates.reference import graphs_of, least_value, network, problem_of
from tests.conftest import sample


def smooth(seed):
    torch.manual_seed(seed)
    return problem_of(nn.Sequential(nn.Linear(2, 6), nn.GELU(), nn.Linear(6, 1)).double())


def integers(seed):
    problem = problem_of(network(seed, width=6))
    mip = replace(
        problem.mip, lower=[-1.0, -3.0, -50.0], upper=[1.0, 3.0, 50.0], integer=[False, True, False]
    )
    return problem.derived(mip, problem.blocks)


def many_inputs(seed):
    """Signs are divided, and not inputs."""
    ends = np.append(np.ones(12), 50.0)
    problem = dt.Problem(dt.Mip(cost=np.append(np.zeros(12), 1.0), lower=-ends, upper=ends))
    problem.add_predictor(network(seed, 12, width=6), np.arange(12), [12], name="net")
    return problem


def made(problem, goal):
    certificate = certify(problem, goal, "nodes", 20.0)
    assert certificate is not None
    return certificate


def looked_at(problem, certificate):
    return verify(problem, certificate, graphs_of(problem))


KINDS = [lambda s: problem_of(network(s, width=6)), smooth, integers, many_inputs, chained, several_classes]


@pytest.mark.parametrize("seed", sample(range(6), 1))
@pytest.mark.parametrize("make", KINDS)
def test_what_the_tree_proves_the_checker_sees(make, seed):
    problem = make(seed)
    least = least_value(problem, 4000)
    goal = least - 0.3 * (1.0 + abs(least))
    certificate = made(problem, goal)
    assert certificate.bound == pytest.approx(goal, rel=1e-5, abs=1e-5)
    found = looked_at(problem, certificate)
    assert found.holds
    assert problem.mip.sign * found.bound <= least
    wrong = least + 1e-3
    (part,) = certificate.parts or (None,)
    if part is not None:
        raised = replace(certificate, bound=wrong, parts=(replace(part, value=wrong),))
        assert not looked_at(problem, raised).holds


def test_signs_are_divided_where_networks_read_many_inputs():
    problem = many_inputs(0)
    certificate = made(problem, least_value(problem, 4000) - 0.05)
    (part,) = certificate.parts
    assert np.any(part.tree.variable >= problem.mip.n_columns)


@pytest.mark.parametrize("make", [KINDS[0], chained])
def test_numbers_that_were_changed_prove_nothing_wrong(make):
    """Whatever stands in a leaf or a division: what the checker says is below every point."""
    problem = make(1)
    least = least_value(problem, 4000)
    certificate = made(problem, least - 0.02)
    (part,) = certificate.parts
    tree, rng = part.tree, np.random.default_rng(0)
    changed = [replace(tree, at=tree.at + rng.normal(0.0, 0.2, tree.at.shape))]
    changed += [replace(tree, uses=rng.permutation(tree.used))]
    for place in fields(Leaves):
        numbers = getattr(tree.leaves, place.name)
        if place.name != "objective":
            for size in (1e-3, 1.0):
                moved = numbers + size * rng.normal(size=numbers.shape)
                changed.append(replace(tree, leaves=replace(tree.leaves, **{place.name: moved})))
    for value in (part.value, least + 0.05 - problem.mip.sign * problem.mip.offset):
        for other in changed:
            found = looked_at(problem, replace(certificate, parts=(replace(part, tree=other, value=value),)))
            assert found.bound is None or problem.mip.sign * found.bound <= least
    for bad in (tree.used + len(tree.leaves), -1 - tree.used, np.append(tree.used, 0)):
        other = replace(part, tree=replace(tree, uses=bad))
        assert not looked_at(problem, replace(certificate, parts=(other,))).holds
