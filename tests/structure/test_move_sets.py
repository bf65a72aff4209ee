"""Closed-form sets are recognised from rows, and every point of the host lies in them."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.bounds.box import propagate
from dovetail.structure.components import components
from dovetail.structure.move_sets import move_set

ROOM = 1e-6


def found(problem):
    (part,) = components(problem).of_one_sample(problem)
    return move_set(problem, part, propagate(problem.mip.minimised().loosened()), ROOM)


def with_block(mip, inputs, output):
    problem = dt.Problem(mip)
    problem.add_predictor(lambda X: X.sum(1), inputs=inputs, outputs=[output])
    return problem


def assert_holds(one, x):
    """Some moves within the limits lead to the inputs of a point."""
    t = one.sign * (x[one.columns] - one.start)
    assert np.all(t >= -1e-12) and np.all(t <= one.limit + 1e-12)
    assert one.least <= one.weights @ t <= one.most
    assert np.all(np.abs(one.origin + one.directions @ t - x[one.inputs]) <= one.give + 1e-15)
    cost = np.random.default_rng(0).normal(size=x.size)
    per_move, constant = one.costs(cost)
    columns = np.union1d(one.columns, one.inputs)
    assert per_move @ t + constant <= cost[columns] @ x[columns] + 1e-12
    assert per_move @ t + constant >= cost[columns] @ x[columns] - 1e-4


def test_a_box():
    one = found(with_block(dt.Mip(cost=[0.0] * 3, lower=[-1.0, 0.0, -9.0], upper=[1.0, 2.0, 9.0]), [0, 1], 2))
    assert one.directions.tolist() == [[1.0, 0.0], [0.0, 1.0]] and np.isinf(one.most)
    assert_holds(one, np.array([-1.0 - ROOM, 2.0 + ROOM, 0.0]))


def test_a_simplex():
    mip = dt.Mip(
        cost=[0.0] * 4, A=[[1.0, 1.0, 1.0, 0.0]], row_lower=[1.0], row_upper=[1.0], upper=[1, 1, 1, 9.0]
    )
    one = found(with_block(mip, [0, 1, 2], 3))
    assert one.weights.tolist() == [1.0] * 3 and one.most - one.least == pytest.approx(2e-6, rel=1e-3)
    assert_holds(one, np.array([0.2, 0.3, 0.5 + ROOM, 0.0]))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_ball_and_weights_of_either_sign(sign):
    """x = w + a - b, with a budget; a lower limit on -a - b is the same budget."""
    budget = [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0]
    A = [[1.0, 0, -1, 0, 1, 0, 0], [0, 2.0, 0, -2, 0, 2, 0], [sign * v for v in budget]]
    limits = {"row_lower": [0.5, 1.0, -np.inf], "row_upper": [0.5, 1.0, 0.7]}
    if sign < 0:
        limits = {"row_lower": [0.5, 1.0, -0.7], "row_upper": [0.5, 1.0, np.inf]}
    mip = dt.Mip(
        cost=[0.0] * 7, A=A, lower=[-9.0, -9, 0, 0, 0, 0, -99], upper=[9.0, 9, 1, 1, 1, 1, 99], **limits
    )
    one = found(with_block(mip, [0, 1], 6))
    assert one.columns.size == 4 and np.all(one.weights == 1.0)
    assert_holds(one, np.array([0.5 + 0.3 + ROOM, 0.5 - 0.2, 0.3, 0.0, 0.0, 0.2, 0.0]))
    assert_holds(one, np.array([0.5, 0.5 + 0.7 + ROOM, 0.0, 0.7 + ROOM, 0.0, 0.0, 0.0]))


def test_more_rows_make_a_larger_set_and_inputs_without_bounds_make_none():
    A = [[1.0, 1.0, 0.0], [1.0, -1.0, 0.0]]
    mip = dt.Mip(cost=[0.0] * 3, A=A, row_lower=[-np.inf] * 2, row_upper=[1.0, 0.0], upper=[1.0, 1.0, 9.0])
    assert_holds(found(with_block(mip, [0, 1], 2)), np.array([0.9, 0.1, 0.0]))
    endless = dt.Mip(cost=[0.0] * 3, lower=[-np.inf, 0.0, 0.0], upper=[np.inf, 1.0, 9.0])
    assert found(with_block(endless, [0, 1], 2)) is None


def test_the_same_set_has_its_moves_in_one_order_wherever_its_columns_stand():
    """x = w + p - q in blocks that list p and q in either order; in one the row is turned round."""
    sets = []
    for up, down, sign in ((1, 2, 1.0), (2, 1, 1.0), (2, 1, -1.0)):
        row = np.zeros(4)
        row[[0, up, down]] = sign, -sign, sign
        lower, upper = [-9.0, 0.0, 0.0, -9.0], [9.0, 2.0, 2.0, 9.0]
        mip = dt.Mip(cost=[0.0] * 4, A=[row], row_lower=sign, row_upper=sign, lower=lower, upper=upper)
        sets.append(found(with_block(mip, [0], 3)))
    assert all(np.array_equal(one.directions, sets[0].directions) for one in sets)
    assert sets[0].columns.tolist() == [1, 2] and sets[1].columns.tolist() == [2, 1]
