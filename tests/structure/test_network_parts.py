"""Networks that cost and those that do not: each part computes what the whole says of its columns."""

import numpy as np

from dovetail.structure.networks import joint_network, network_parts
from tests.structure.test_joint_network import chained_problem, values_of

LOWER, UPPER = np.array([*[-2.0] * 3, *[-50.0] * 6]), np.array([*[2.0] * 3, *[50.0] * 6])


def parts_of(problem, *priced):
    """Where these columns cost something."""
    cost = np.zeros(problem.mip.n_columns)
    cost[list(priced)] = 1.0
    whole = joint_network(problem, LOWER.copy(), UPPER.copy())
    return whole, network_parts(whole, cost)


def test_both_parts_say_what_the_whole_says():
    problem = chained_problem()
    whole, parts = parts_of(problem, 4)  # the second sample of the first network, which nobody reads
    assert len(parts) == 2
    assert [sorted(c for g in part.groups for c in g.columns) for part in parts] == [[4], [3, 5, 6, 7, 8]]
    assert sum(len(part.graph.steps) for part in parts) == len(whole.graph.steps) + 1  # each gathers its own
    x = np.append(np.random.default_rng(0).uniform(-2.0, 2.0, 3), np.zeros(6))
    expected = values_of(whole, x)
    for part in parts:
        for column, value in values_of(part, x).items():
            assert np.isclose(value, expected[column], rtol=0.0, atol=1e-9)


def test_what_is_chained_stays_together():
    problem = chained_problem()
    whole, parts = parts_of(problem, 7)  # reads the networks of columns 3, 5 and 6, which cost nothing
    assert parts == (whole,)
    whole, parts = parts_of(problem)
    assert parts == (whole,)
    whole, parts = parts_of(problem, *range(3, 9))
    assert parts == (whole,)
