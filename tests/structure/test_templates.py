"""Templates against the host itself: every number must be found where the arrays say it is."""

import numpy as np
import pytest
import scipy.sparse as sp

import dovetail as dt
from dovetail.structure.components import NOBODY, components
from dovetail.structure.templates import FIXED, TemplateArrays, templates
from dovetail.testing.problems import busy, random_mlp


def shuffled(problem: dt.Problem, seed: int) -> dt.Problem:
    """The same problem with columns and rows in another order."""
    rng = np.random.default_rng(seed)
    mip = problem.mip
    order, rows = rng.permutation(mip.n_columns), rng.permutation(mip.n_rows)
    place = np.argsort(order)
    again = dt.Problem(
        dt.Mip(
            mip.cost[order],
            sp.csr_array(mip.A[rows][:, order]),
            mip.row_lower[rows],
            mip.row_upper[rows],
            mip.lower[order],
            mip.upper[order],
            mip.integer[order],
            sense="max" if mip.sign < 0 else "min",
        )
    )
    for block in problem.blocks:
        again.add_predictor(
            block.predictor,
            place[block.inputs],
            place[block.outputs],
            output_type="classification" if block.classifies else "regression",
        )
    return again


def treated(n: int, seed: int = 0, *, budget: float = 0.1) -> dt.Problem:
    """Samples x = w + up - down with a class each, and budgets for all moves: as `water` has them."""
    rng = np.random.default_rng(seed)
    d = 3
    size = n * d
    eye, every = sp.eye_array(size), sp.kron(np.ones((1, n)), sp.eye_array(d))
    A = sp.block_array([[sp.csr_array((size, n)), eye, -eye, eye], [None, None, every, every]])
    w = rng.standard_normal(size)
    mip = dt.Mip(
        cost=np.repeat([1.0, 0.0], [n, 3 * size]),
        A=A,
        row_lower=np.concatenate([w, np.full(d, -np.inf)]),
        row_upper=np.concatenate([w, np.full(d, budget * n)]),
        lower=np.repeat([0.0, -np.inf, 0.0], [n, size, 2 * size]),
        upper=np.repeat([1.0, np.inf], [n, 3 * size]),
        integer=np.repeat([True, False], [n, 3 * size]),
        sense="max",
    )
    problem = dt.Problem(mip)
    problem.add_predictor(
        random_mlp(d, seed=5),
        n + np.arange(size).reshape(n, d),
        np.arange(n)[:, None],
        output_type="classification",
    )
    return problem


def assert_true_to(problem: dt.Problem, template: TemplateArrays) -> None:
    """Every array against the host's own numbers."""
    mip = problem.mip
    assert np.array_equal(template.cost, mip.sign * mip.cost[template.columns])
    assert np.array_equal(template.lower, mip.lower[template.columns])
    assert np.array_equal(template.upper, mip.upper[template.columns])
    A = mip.A.toarray()
    for i in range(template.count):
        mine = template.columns[i]
        coupling = np.zeros_like(A[:, mine])
        coupling[template.coupling.row, template.coupling.column] = template.coupling.entry[i]
        private = np.zeros((template.row_lower.shape[1], len(mine)))
        private[template.private.row, template.private.column] = template.private.entry[i]
        touched = np.flatnonzero(np.any(A[:, mine] != 0.0, axis=1))
        alone = [r for r in touched if not np.any(np.delete(A[r], mine))]
        together = [r for r in touched if r not in alone]
        assert np.array_equal(coupling[together], A[np.ix_(together, mine)])
        assert not np.any(coupling[alone])
        assert sorted(map(tuple, private)) == sorted(map(tuple, A[np.ix_(alone, mine)]))
        sides = sorted(zip(template.row_lower[i], template.row_upper[i], strict=True))
        assert sides == sorted(zip(mip.row_lower[alone], mip.row_upper[alone], strict=True))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("make", [treated, busy])
def test_equal_samples_are_one_template_in_any_order(make, seed):
    problem = shuffled(make(12), seed)
    (template,) = templates(problem, components(problem))
    assert template.count == 12
    assert_true_to(problem, template)
    network = template.networks[0]
    block = problem.blocks[0]
    samples = {tuple(row) for row in block.inputs}
    assert {tuple(row) for row in template.columns[:, network.inputs]} == samples


def test_what_is_fixed_is_data():
    problem = treated(6)
    n = 6
    lower, upper = problem.mip.lower.copy(), problem.mip.upper.copy()
    x = n + np.arange(3 * n).reshape(n, 3)
    lower[x[:, 1]] = upper[x[:, 1]] = np.arange(n)
    mip = problem.mip
    fixed = dt.Problem(
        dt.Mip(mip.cost, mip.A, mip.row_lower, mip.row_upper, lower, upper, mip.integer, sense="max")
    )
    fixed.add_predictor(random_mlp(3, seed=5), x, np.arange(n)[:, None], output_type="classification")
    (template,) = templates(fixed, components(fixed))
    network = template.networks[0]
    assert network.inputs[1] == FIXED
    assert sorted(network.data[:, 1]) == list(range(n))


def test_another_network_is_another_template():
    n = 8
    mip = dt.Mip(cost=np.ones(2 * n), A=np.ones((1, 2 * n)), row_upper=[3.0], row_lower=[-np.inf], upper=1.0)
    problem = dt.Problem(mip)
    columns = np.arange(2 * n).reshape(n, 2)
    for half, seed in ((columns[:5], 1), (columns[5:], 2)):
        problem.add_predictor(random_mlp(1, seed=seed), half[:, :1], half[:, 1:])
    found = templates(problem, components(problem))
    assert [template.count for template in found] == [5, 3]
    assert np.array_equal(np.sort(np.concatenate([t.columns.ravel() for t in found])), np.arange(2 * n))


def test_another_pattern_is_another_template():
    """One sample has a private row that the others have not."""
    n = 6
    A = np.zeros((2, 2 * n))
    A[0], A[1, :2] = 1.0, [1.0, -1.0]
    mip = dt.Mip(cost=np.ones(2 * n), A=A, row_lower=[-np.inf, 0.0], row_upper=[3.0, 1.0], upper=1.0)
    problem = dt.Problem(mip)
    columns = np.arange(2 * n).reshape(n, 2)
    problem.add_predictor(random_mlp(1, seed=1), columns[:, :1], columns[:, 1:])
    parts = components(problem)
    assert np.count_nonzero(parts.row_owner == NOBODY) == 1
    assert [template.count for template in templates(problem, parts)] == [n - 1, 1]
