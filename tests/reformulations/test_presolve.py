"""The presolve brings problems to one form: smaller, with the same points and the same objective."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.bounds.box import propagate
from dovetail.core.check import check
from dovetail.reformulations.presolve import Presolve
from dovetail.reformulations.reformulated import Reformulated
from dovetail_study.zoo.rewriting import RULES, Draft
from tests.conftest import FULL
from tests.differential.instances import make
from tests.differential.judging import as_problem
from tests.tanh import tanh_net

INF = np.inf


def presolved(problem):
    return Presolve().apply(Reformulated.start(problem, propagate(problem.mip.minimised())))


def problem_of(A, row_lower, row_upper, lower, upper, *, cost=None, integer=False, reads=0, writes=1):
    """Columns x, y = f(x), and others; rows over all of them."""
    n = len(lower)
    mip = dt.Mip(
        np.zeros(n) if cost is None else cost, np.array(A, dtype=float).reshape(-1, n), row_lower,
        row_upper, lower, upper, integer,
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(tanh_net(), [reads], [writes])
    return problem


def test_a_row_with_one_entry_is_a_bound():
    made = presolved(problem_of([[-2.0, 0.0]], -1.0, 4.0, [-9.0, -INF], [9.0, INF])).problem
    assert made.mip.n_rows == 0
    assert (made.mip.lower[0], made.mip.upper[0]) == (-2.0, 0.5)


def test_a_row_that_bounds_imply_is_left_out_and_so_is_one_side():
    given = problem_of([[1.0, 1.0], [1.0, -1.0]], [-5.0, -1.0], [5.0, 9.0], [-1.0, -1.0], [1.0, 1.0])
    made = presolved(given).problem.mip
    assert made.n_rows == 1
    assert (made.row_lower[0], made.row_upper[0]) == (-1.0, INF)


def test_an_output_through_a_column_of_its_own_is_the_output():
    """min z, z = 2 y - 1, z <= 0.5 becomes min 2 y - 1, y <= 0.75."""
    given = problem_of(
        [[0.0, -2.0, 1.0]], -1.0, -1.0, [-1.0, -INF, -INF], [1.0, INF, 0.5], cost=[0.0, 0.0, 1.0]
    )
    made = presolved(given)
    mip = made.problem.mip
    assert (mip.n_rows, mip.n_columns) == (0, 2)
    assert mip.cost.tolist() == [0.0, 2.0] and mip.offset == -1.0 and mip.upper[1] == 0.75
    x = made.restrict(np.array([0.3, 0.1]))
    assert x.tolist() == pytest.approx([0.3, 0.1, -0.8])
    assert made.lift(x).tolist() == [0.3, 0.1]


def test_an_input_that_copies_an_integer_is_the_integer():
    """f reads x, x = n with n integer and bounds on n alone."""
    given = problem_of(
        [[1.0, 0.0, -1.0]], 0.0, 0.0, [-INF, -INF, -2.0], [INF, INF, 3.0],
        cost=[0.0, 0.0, 1.0], integer=[False, False, True],
    )  # fmt: skip
    made = presolved(given).problem
    assert made.mip.n_columns == 2
    read = int(made.blocks[0].inputs[0, 0])
    assert made.mip.integer[read] and (made.mip.lower[read], made.mip.upper[read]) == (-2.0, 3.0)
    assert made.mip.cost[read] == 1.0


def test_an_input_in_other_units_keeps_the_integer():
    """x = 0.5 n: the network reads x, and only n says that x comes in steps."""
    given = problem_of(
        [[1.0, 0.0, -0.5]], 0.0, 0.0, [-INF, -INF, -2.0], [INF, INF, 3.0], integer=[False, False, True]
    )
    made = presolved(given)
    assert made is None or made.problem.mip.n_columns == 3


def test_binaries_that_give_a_column_its_value_are_an_integer():
    levels = [2.0, 3.0, 4.0]
    given = problem_of(
        [[1.0, 0.0, -2.0, -3.0, -4.0], [0.0, 0.0, 1.0, 1.0, 1.0]], [0.0, 1.0], [0.0, 1.0],
        [-9.0, -INF, 0.0, 0.0, 0.0], [9.0, INF, 1.0, 1.0, 1.0], integer=[False, False, True, True, True],
    )  # fmt: skip
    made = presolved(given)
    mip = made.problem.mip
    assert (mip.n_rows, mip.n_columns) == (0, 2)
    assert mip.integer[0] and (mip.lower[0], mip.upper[0]) == (2.0, 4.0)
    for k, level in enumerate(levels):
        assert made.restrict(np.array([level, 0.0]))[2:].tolist() == np.eye(3)[k].tolist()


def test_binaries_that_cost_stay_and_the_column_is_known_to_be_an_integer():
    given = problem_of(
        [[1.0, 0.0, -2.0, -3.0], [0.0, 0.0, 1.0, 1.0]], [0.0, 1.0], [0.0, 1.0], [-9.0, -INF, 0.0, 0.0],
        [9.0, INF, 1.0, 1.0], integer=[False, False, True, True], cost=[0.0, 0.0, 1.0, 3.0],
    )  # fmt: skip
    mip = presolved(given).problem.mip
    assert mip.integer.tolist() == [True, False] + [True] * (mip.n_columns - 2)


def test_a_slack_is_a_side_of_its_row():
    """x + y + 2 s = 3 with s in [0, 1] is 1 <= x + y <= 3, in units of the slack."""
    made = presolved(problem_of([[1.0, 1.0, 2.0]], 3.0, 3.0, [-9.0, -9.0, 0.0], [9.0, 9.0, 1.0]))
    mip = made.problem.mip
    assert mip.A.toarray().tolist() == [[0.5, 0.5]]
    assert (mip.row_lower[0], mip.row_upper[0]) == (0.5, 1.5)
    assert made.restrict(np.array([1.0, 0.5]))[2] == 0.75


@pytest.mark.parametrize("sense", ["min", "max"])
def test_a_column_that_one_row_keeps_up_is_as_low_as_the_row_allows(sense):
    """a >= x + 1.5, a is paid for and limited from above: a = x + 1.5, and a <= 2 limits x."""
    sign = 1.0 if sense == "min" else -1.0
    A = [[-1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    mip = dt.Mip(
        [0.0, 1.0, sign * 3.0], A, [1.5, -INF], [INF, 4.0], [-1.0, -9.0, 0.0], [1.0, 9.0, 2.0], sense=sense
    )
    problem = dt.Problem(mip)
    problem.add_predictor(tanh_net(), [0], [1])
    made = presolved(problem)
    mip = made.problem.mip
    assert mip.n_columns == 2 and mip.upper[0] == 0.5
    assert mip.cost.tolist() == [sign * 3.0, 1.0] and mip.offset == sign * 4.5
    assert made.restrict(np.array([0.25, 0.0])).tolist() == [0.25, 0.0, 1.75]


def test_a_column_that_may_be_worth_more_stays():
    """a >= x + 1.5 where a earns something, or where another row wants more of it."""
    bounds = [-1.0, -9.0, 0.0], [1.0, 9.0, 9.0]
    earns = problem_of([[-1.0, 0.0, 1.0]], 1.5, INF, *bounds, cost=[0.0, 0.0, -1.0])
    wanted = problem_of([[-1.0, 0.0, 1.0], [0.0, 1.0, 1.0]], [1.5, 2.0], INF, *bounds, cost=[0.0, 0.0, 1.0])
    assert presolved(earns) is None and presolved(wanted) is None


def test_a_split_that_a_budget_limits_stays_a_split():
    """x = w + p - q, p + q <= 1: p and q have bounds of their own."""
    A = [[1.0, 0.0, -1.0, 1.0], [0.0, 0.0, 1.0, 1.0]]
    given = problem_of(A, [0.5, -INF], [0.5, 1.0], [0.0, -INF, 0.0, 0.0], [1.0, INF, 2.0, 2.0])
    assert presolved(given) is None


def test_contradicting_rows_are_left_to_the_solve():
    given = problem_of([[1.0, 0.0], [1.0, 0.0]], [1.0, -INF], [INF, 0.0], [-9.0, -INF], [9.0, INF])
    assert presolved(given) is None
    assert dt.solve(given, log=False).status == "infeasible"


@pytest.mark.parametrize("seed", range(300 if FULL else 30))
def test_points_of_both_forms_are_feasible_together_with_the_same_objective(seed):
    rng = np.random.default_rng(seed)
    draft, used = Draft.of(as_problem(make(seed))), 0
    for name in rng.permutation([name for name in RULES if not name.startswith(("as ", "networks"))]):
        used += RULES[name](draft, rng) if used < 4 else 0
    problem = draft.problem()
    made = presolved(problem)
    if made is None:
        return
    inner = made.problem
    low, high = (np.clip(side, -5.0, 5.0) for side in (inner.mip.lower, inner.mip.upper))
    for _ in range(60):
        z = rng.uniform(low, high)
        z = inner.predict(np.where(inner.mip.integer, np.round(z), z))
        x = made.restrict(z)
        assert made.lift(x) == pytest.approx(z, abs=1e-9)
        assert problem.mip.objective(x) == pytest.approx(inner.mip.objective(z), abs=1e-7)
        assert check(problem, x).within(1e-5) >= check(inner, z).within(1e-9)
        assert check(inner, z).within(1e-5) >= check(problem, x).within(1e-9)
