"""Absolute values split into parts: the same points, the same objective, and nothing else is split."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.bounds.box import propagate
from dovetail.core.check import check
from dovetail.reformulations.absolute_values import AbsoluteValues
from dovetail.reformulations.presolve import Presolve
from dovetail.reformulations.reformulated import Reformulated, reformulate
from tests.conftest import FULL
from tests.tanh import tanh_net

X, Y, A, D = 0, 1, 2, 3
INF = np.inf
POINTS = 400 if FULL else 100


def problem(rows, cost=(0.0, 1.0, 0.5, 0.0), *, integer=False, sense="min"):
    """x in [-1, 2], y = f(x), a and d of nobody; rows are ({column: factor}, lower, upper)."""
    matrix = np.zeros((len(rows), 4))
    for i, (entries, _, _) in enumerate(rows):
        matrix[i, list(entries)] = list(entries.values())
    mip = dt.Mip(
        cost, matrix, [low for _, low, _ in rows], [high for _, _, high in rows],
        [-1.0, -9.0, -3.0, -5.0], [2.0, 9.0, 8.0, 5.0], [False, False, integer, False], sense=sense,
    )  # fmt: skip
    made = dt.Problem(mip)
    made.add_predictor(tanh_net(), [X], [Y])
    return made


def applied(given):
    return AbsoluteValues().apply(Reformulated.start(given, propagate(given.mip.minimised())))


WRITTEN = {
    "two rows": [({A: 1.0, X: -1.0}, -0.3, INF), ({A: 1.0, X: 1.0}, 0.3, INF)],
    "other sides and units": [({X: 2.0, A: -2.0}, -INF, 0.6), ({A: 0.25, X: 0.25}, 0.075, INF)],
    "two slopes and a corner": [({A: 1.0, X: -3.0}, -0.5, INF), ({A: 2.0, X: 1.0}, 1.0, INF)],
    "the corner outside the box": [({A: 1.0, X: -1.0}, -2.5, INF), ({A: 1.0, X: 1.0}, 2.5, INF)],
}  # fmt: skip
LIMIT = ({A: 2.0, X: 1.0}, -INF, 5.0)


@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize("rows", WRITTEN.values(), ids=WRITTEN)
def test_a_point_of_one_form_is_a_point_of_the_other(rows, sense):
    given = problem([*rows, LIMIT], sense=sense)
    split = applied(given)
    rng = np.random.default_rng(0)
    inside = 0
    for x in given.mip.lower + rng.random((POINTS, 4)) * (given.mip.upper - given.mip.lower):
        x[D] = x[X] - 0.3
        x = given.predict(x)
        z = split.lift(x)
        assert np.array_equal(split.restrict(z), x)
        assert split.problem.mip.objective(z) == pytest.approx(given.mip.objective(x), abs=1e-12)
        mine, parts = check(given, x), check(split.problem, z).within()
        assert not mine.within() or parts
        assert not mine.rows.amount > 1e-4 or not parts
        inside += mine.within()
    assert 2 < inside < POINTS - 2


def test_a_point_of_the_parts_keeps_the_rows_that_were_split():
    given = problem([*WRITTEN["two slopes and a corner"], LIMIT])
    split = applied(given)
    mip, rng = split.problem.mip, np.random.default_rng(1)
    for parts in rng.random((50, 3)):
        z = np.concatenate([np.zeros(4), parts])
        on_parts = -mip.A[[-2, -1]][:, 4:]
        z[[A, X]] = on_parts @ parts + mip.row_lower[-2:]
        activity = given.mip.A @ z[:4]
        assert np.all(activity[:2] >= given.mip.row_lower[:2] - 1e-9)


def test_what_the_check_accepts_is_a_point_of_the_parts():
    """A bound of the split problem must hold for points that miss their rows by the tolerance."""
    given = problem([*WRITTEN["two rows"], LIMIT])
    split = applied(given)
    for x, off in ((0.7, 0.9e-6), (0.1, -0.9e-6), (-1.0, -0.9e-6)):
        moved = x + off * (x == -1.0)
        point = np.array([moved, 0.0, abs(moved - 0.3) - 0.9e-6, 0.0])
        point = given.predict(point)
        assert check(given, point).within()
        assert check(split.problem, split.lift(point)).within()


def test_the_difference_may_stand_in_a_column_of_its_own():
    """d = x - 0.3, a >= |d|: the presolve replaces d first."""
    rows = [({X: 1.0, D: -1.0}, 0.3, 0.3), ({A: 1.0, D: -1.0}, 0.0, INF), ({A: 1.0, D: 1.0}, 0.0, INF)]
    given = problem([*rows, LIMIT])
    start = Reformulated.start(given, propagate(given.mip.minimised()))
    made = reformulate(start, (Presolve(), AbsoluteValues()))
    assert made.note == "1 absolute value of inputs split into parts"
    assert made.problem.mip.n_columns == 3 + 3


@pytest.mark.parametrize(
    "rows",
    [
        [({A: 1.0, X: -1.0}, -0.3, INF)],  # one side
        [({A: 1.0, X: -1.0}, -0.3, INF), ({A: -1.0, X: -1.0}, -0.3, INF)],  # a is limited from above
        [({A: 1.0, Y: -1.0}, -0.3, INF), ({A: 1.0, Y: 1.0}, 0.3, INF)],  # of an output
        [({A: 1.0, X: -1.0, D: 1.0}, -0.3, INF), ({A: 1.0, X: 1.0}, 0.3, INF)],
    ],
)
def test_nothing_else_is_split(rows):
    assert applied(problem(rows)) is None


def test_a_maximum_over_inputs_and_whole_numbers_stay():
    assert applied(problem(WRITTEN["two rows"], integer=True)) is None
    mip = dt.Mip(
        [1.0, 0.0, 0.0, 0.0],
        [[1, -1, 0, 0], [1, 1, 0, 0], [1, 0, -1, 0], [1, 0, 1, 0]],
        np.zeros(4),
        np.inf,
        lower=[0.0, -1.0, -1.0, -9.0],
        upper=[1.0, 1.0, 1.0, 9.0],
    )
    both = dt.Problem(mip)
    both.add_predictor(tanh_net(2), [1, 2], [3])
    assert applied(both) is None


def test_names_stay_and_parts_are_named_after_their_input():
    """min a with a >= |x - 0.5|."""
    mip = dt.Mip(
        [0.0, 1.0, 1.0], [[-1.0, 1.0, 0.0], [1.0, 1.0, 0.0]], [-0.5, 0.5], np.inf, [0.0, 0.0, -np.inf],
        [1.0, 1.0, np.inf], names=["x", "a", "y"], row_names=["up", "down"],
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(lambda X: X.sum(1), ["x"], ["y"])
    made = AbsoluteValues().apply(Reformulated.start(problem, propagate(mip))).problem.mip
    assert list(made.names) == ["x", "a", "y", "x above", "x below", "x beyond"]
    assert list(made.row_names) == ["up", "down", "a in parts", "x in parts"]
