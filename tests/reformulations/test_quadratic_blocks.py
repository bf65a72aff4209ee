"""Quadratic terms as blocks: few of them, exact, and shared by rows and objective."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.quadratic import QuadraticTerms
from dovetail.reformulations.quadratic_blocks import with_quadratics


def terms(row, *entries):
    left, right, coefficients = zip(*entries, strict=True)
    return QuadraticTerms(row, np.array(left), np.array(right), np.array(coefficients, dtype=float))


def program(n, **more):
    return dt.Problem(dt.Mip(np.zeros(n), np.zeros((1, n)), -np.inf, 5.0, lower=-3.0, upper=3.0, **more))


def value(problem, x):
    """Objective and rows at a point of the first columns."""
    mip = problem.mip
    z = problem.predict(np.concatenate([x, np.zeros(mip.n_columns - len(x))]))
    return mip.objective(z), mip.A @ z


def test_squares_are_samples_of_one_block():
    written = with_quadratics(program(4), [terms(None, *((j, j, j + 1.0) for j in range(4)))])
    (block,) = written.blocks
    assert block.samples == 4 and block.inputs.shape == (4, 1)
    assert value(written, np.array([1.0, 2.0, -1.0, 0.5]))[0] == 1.0 + 8.0 + 3.0 + 1.0


def test_a_term_in_two_places_is_one_column():
    written = with_quadratics(program(2), [terms(None, (0, 1, 3.0)), terms(0, (1, 0, 2.0), (0, 0, 1.0))])
    assert written.mip.n_columns == 2 + 2
    assert [block.name for block in written.blocks] == ["products", "squares"]
    objective, rows = value(written, np.array([2.0, -1.0]))
    assert (objective, rows.tolist()) == (-6.0, [-4.0 + 4.0])


def test_mixed_variables_that_bend_one_way_are_one_form():
    pairs = [(0, 0, 1.0), (0, 1, -2.0), (1, 1, 1.0), (2, 2, 3.0), (3, 2, -6.0), (3, 3, 3.0)]
    written = with_quadratics(program(4), [terms(None, *pairs)])
    (block,) = written.blocks  # (a - b)^2 and 3 (c - d)^2: one form, two samples
    assert block.inputs.tolist() == [[0, 1], [2, 3]]
    assert value(written, np.array([1.0, 3.0, 0.5, -0.5]))[0] == 4.0 + 3.0


def test_the_square_of_a_binary_is_the_binary():
    mip = dt.Mip([1.0, 0.0], upper=[1.0, 4.0], integer=True)
    written = with_quadratics(dt.Problem(mip), [terms(None, (0, 0, 2.0))])
    assert not written.blocks and written.mip.cost.tolist() == [3.0, 0.0]


def test_squares_of_the_objective_are_completed():
    mip = dt.Mip([-2.0, 4.0, 0.0], lower=-9.0, upper=9.0, offset=5.0)  # (a - 1)^2 + (b + 2)^2
    written = with_quadratics(dt.Problem(mip), [terms(None, (0, 0, 1.0), (1, 1, 1.0))])
    assert not np.any(written.mip.cost[:3]) and written.mip.offset == 0.0
    assert value(written, np.array([1.0 + 1e-9, -2.0, 0.0]))[0] == pytest.approx(1e-18, rel=1e-6)


def test_forms_are_completed_where_they_can_be():
    for cost, left in (([-2.0, 2.0], False), ([-2.0, 3.0], True)):  # (a - b)^2 - 2 (a - b), or not quite
        written = with_quadratics(
            dt.Problem(dt.Mip(cost, lower=-9.0, upper=9.0)),
            [terms(None, (0, 0, 1.0), (0, 1, -2.0), (1, 1, 1.0))],
        )
        assert np.any(written.mip.cost[:2]) == left
        x = np.array([2.0, -1.0])
        assert value(written, x)[0] == pytest.approx(9.0 + np.dot(cost, x), abs=1e-12)


def test_values_are_those_of_the_terms():
    rng = np.random.default_rng(3)
    for _ in range(5):
        upper = np.triu(rng.integers(-3, 4, (4, 4)))
        i, j = np.nonzero(upper)
        cost = rng.integers(-2, 3, 4).astype(float)
        mip = dt.Mip(cost, np.ones((1, 4)), -np.inf, 5.0, lower=-3.0, upper=3.0)
        both = [QuadraticTerms(row, i, j, upper[i, j].astype(float)) for row in (None, 0)]
        written = with_quadratics(dt.Problem(mip), both)
        x = rng.normal(size=4)
        objective, rows = value(written, x)
        assert objective == pytest.approx(x @ upper @ x + cost @ x)
        assert rows[0] == pytest.approx(x @ upper @ x + x.sum())


def test_a_block_of_that_name_may_be_there():
    problem = program(3)
    problem.add_predictor(lambda X: X, [0], [2], name="squares")
    written = with_quadratics(problem, [terms(None, (0, 0, 1.0))])
    assert [block.name for block in written.blocks] == ["squares", "squares 2"]
