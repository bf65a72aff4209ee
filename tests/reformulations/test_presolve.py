"""The presolve brings problems to one form: smaller, with the same points and the same objective."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.bounds.box import propagate
from dovetail.core.check import check
from dovetail.reformulations.presolve import Presolve, _Definitions, _Form
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


def test_columns_with_one_value_are_left_aside_and_outputs_are_not():
    """2 x = 1 gives x, x - z = 0.25 then z; the output y has one value, and its row stays."""
    mip = dt.Mip(
        np.zeros(4), [[2.0, 0.0, 0.0, 0.0], [1.0, 0.0, -1.0, 0.0], [0.0, 1.0, 1.0, 1.0]], [1.0, 0.25, 0.0],
        [1.0, 0.25, 0.0], [-3.0, 0.5, -3.0, -3.0], [3.0, 0.5, 3.0, 3.0],
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(lambda X: X.sum(axis=1), [0, 2, 3], [1])
    made = presolved(problem).problem.mip
    assert made.lower[[0, 2]].tolist() == made.upper[[0, 2]].tolist() == [0.5, 0.25]
    assert made.A.toarray().tolist() == [[0.0, 1.0, 1.0, 1.0]] and made.lower[3] < made.upper[3]


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


def test_a_level_of_0_needs_no_entry():
    """x = b_1 + 2 b_2, b_0 + b_1 + b_2 = 1."""
    given = problem_of(
        [[1.0, 0.0, 0.0, -1.0, -2.0], [0.0, 0.0, 1.0, 1.0, 1.0]], [0.0, 1.0], [0.0, 1.0],
        [-9.0, -INF, 0.0, 0.0, 0.0], [9.0, INF, 1.0, 1.0, 1.0], integer=[False, False, True, True, True],
    )  # fmt: skip
    made = presolved(given)
    assert made.problem.mip.n_columns == 2 and made.problem.mip.integer[0]
    for level in range(3):
        assert made.restrict(np.array([float(level), 0.0]))[2:].tolist() == np.eye(3)[level].tolist()


@pytest.mark.parametrize("unit", [0.1, 0.7, -3.0, 1.0 / 3.0])
def test_values_in_other_units_are_whole_all_the_same(unit):
    """Divided by the unit of its row, 3 may come out as 3.0000000000000004."""
    A = unit * np.array([[1.0, 0.0, -1.0, -2.0, -3.0], [0.0, 0.0, 1.0, 1.0, 1.0]])
    given = problem_of(
        A, unit * np.array([0.0, 1.0]), unit * np.array([0.0, 1.0]), [-9.0, -INF, 0.0, 0.0, 0.0],
        [9.0, INF, 1.0, 1.0, 1.0], integer=[False, False, True, True, True],
    )  # fmt: skip
    mip = presolved(given).problem.mip
    assert (mip.n_columns, mip.lower[0], mip.upper[0]) == (2, 1.0, 3.0) and mip.integer[0]


def test_what_removed_binaries_define_comes_back_with_them():
    """w = 2 b_1 + 1 is replaced first, then the binaries go; and a binary may have a value by binaries."""
    columns = {"x": 0, "y": 1, "b1": 2, "b2": 3, "b3": 4, "w": 5}
    A = np.zeros((3, 6))
    A[0, [0, 2, 3, 4]] = [1.0, -2.0, -3.0, -4.0]
    A[1, [2, 3, 4]] = 1.0
    A[2, [5, 2]] = [1.0, -2.0]
    given = problem_of(
        A, [0.0, 1.0, 1.0], [0.0, 1.0, 1.0], [-9.0, -INF, 0.0, 0.0, 0.0, -INF],
        [9.0, INF, 1.0, 1.0, 1.0, INF], integer=[False, False, True, True, True, False],
    )  # fmt: skip
    made = presolved(given)
    for level, w in ((2.0, 3.0), (3.0, 1.0), (4.0, 1.0)):
        x = made.restrict(made.problem.predict(np.array([level, 0.0])))
        assert x[columns["w"]] == w and check(given, x).within()


def test_two_equations_may_make_the_same_column_whole():
    A = np.zeros((2, 6))
    A[0, [0, 2, 3]], A[1, [0, 4, 5]] = [1.0, -1.0, -1.0], [1.0, -1.0, -1.0]
    given = problem_of(
        A, 0.0, 0.0, [-9.0, -INF, 0.0, 0.0, 0.0, 0.0], [9.0, INF, 2.0, 2.0, 2.0, 2.0],
        integer=[False, False, True, True, True, True], cost=[0.0, 1.0, 0.1, 0.1, 0.1, 0.1],
    )  # fmt: skip
    assert presolved(given).problem.mip.integer[0]


def test_entries_that_engines_would_drop_are_not_made():
    """d = 5e-10 L, L up to 1e10: the term counts, however small its entry."""
    A = [[0.0, 0.0, 1e3, -5e-7], [1.0, 0.0, 1.0, 0.0], [3e9, 0.0, 0.0, 1.0]]
    given = problem_of(
        A, [0.0, -INF, -INF], [0.0, 1.0, 9e9], [-1.0, -INF, -INF, 0.0], [1.0, INF, INF, 1e10],
        cost=[0.0, 1.0, -1.0, 0.0],
    )  # fmt: skip
    assert presolved(given) is None


def test_a_bound_of_minus_zero_is_zero():
    made = presolved(problem_of([[-3.0, 0.0]], 0.0, 0.0, [0.0, -INF], [0.0, INF]))
    assert not np.signbit(made.problem.mip.upper[0]) and not np.signbit(made.problem.mip.lower[0])


def test_many_equations_over_one_column_are_replaced_together(monkeypatch):
    """One round for all of them, however many."""
    count, rounds = 60, []
    A = np.hstack([-np.arange(1.0, count + 1)[:, None], np.zeros((count, 1)), np.eye(count)])
    given = problem_of(A, 0.0, 0.0, [-1.0, -INF, *[-INF] * count], [1.0, INF, *[INF] * count])
    own = _Form._replaced
    monkeypatch.setattr(_Form, "_replaced", lambda form: rounds.append(0) or own(form))
    assert presolved(given).problem.mip.n_columns == 2
    assert len(rounds) <= 3


def test_binaries_that_cost_stay_and_the_column_is_known_to_be_an_integer():
    given = problem_of(
        [[1.0, 0.0, -2.0, -3.0], [0.0, 0.0, 1.0, 1.0]], [0.0, 1.0], [0.0, 1.0], [-9.0, -INF, 0.0, 0.0],
        [9.0, INF, 1.0, 1.0], integer=[False, False, True, True], cost=[0.0, 0.0, 1.0, 3.0],
    )  # fmt: skip
    mip = presolved(given).problem.mip
    assert mip.integer.tolist() == [True, False] + [True] * (mip.n_columns - 2)


def test_a_slack_is_a_side_of_its_row():
    """x + y + 2 s = 3 with s in [0, 1] is 1 <= x + y <= 3; s / 2 is counted in units of s."""
    made = presolved(problem_of([[1.0, 1.0, 2.0]], 3.0, 3.0, [-9.0, -9.0, 0.0], [9.0, 9.0, 1.0]))
    mip = made.problem.mip
    assert mip.A.toarray().tolist() == [[1.0, 1.0]]
    assert (mip.row_lower[0], mip.row_upper[0]) == (1.0, 3.0)
    assert made.restrict(np.array([1.0, 0.5]))[2] == 0.75
    made = presolved(problem_of([[1.0, 1.0, 0.5]], 3.0, 3.0, [-9.0, -9.0, 0.0], [9.0, 9.0, 1.0]))
    mip = made.problem.mip
    assert mip.A.toarray().tolist() == [[2.0, 2.0]]
    assert (mip.row_lower[0], mip.row_upper[0]) == (5.0, 6.0)


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


@pytest.mark.parametrize("seed", range(300 if FULL else 8))
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
    for _ in range(60 if FULL else 20):
        z = rng.uniform(low, high)
        z = inner.predict(np.where(inner.mip.integer, np.round(z), z))
        x = made.restrict(z)
        assert made.lift(x) == pytest.approx(z, abs=1e-9)
        assert problem.mip.objective(x) == pytest.approx(inner.mip.objective(z), abs=1e-7)
        given, rewritten = check(problem, x), check(inner, z)
        assert given.within(1e-5) >= rewritten.within(1e-9)
        assert rewritten.within(1e-5) >= given.within(1e-9)


@pytest.mark.parametrize("seed", range(60 if FULL else 6))
def test_rows_that_are_passed_over_define_nothing(seed, monkeypatch):
    """All rows looked at one by one, the form is the same."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(4, 9)), int(rng.integers(1, 6))
    A = np.where(rng.random((m, n)) < 0.5, rng.choice([-2.0, -1.0, 1.0, 3.0], (m, n)), 0.0)
    side = np.round(rng.uniform(-2.0, 2.0, m), 1)
    lower = np.where(rng.random(n) < 0.3, -INF, np.round(rng.uniform(-5.0, 0.0, n)))
    upper = np.where(rng.random(n) < 0.3, INF, np.round(rng.uniform(0.0, 5.0, n)))
    given = problem_of(
        A, side, np.where(rng.random(m) < 0.8, side, INF), lower, upper, cost=rng.normal(size=n)
    )
    quick = presolved(given)
    monkeypatch.setattr(_Definitions, "_may_define", lambda self: np.ones(self._form.A.shape[0], dtype=bool))
    slow = presolved(given)
    assert (quick is None) == (slow is None)
    if quick is not None:
        one, other = quick.problem.mip, slow.problem.mip
        assert np.array_equal(one.A.toarray(), other.A.toarray()) and np.array_equal(one.cost, other.cost)
        for name in ("row_lower", "row_upper", "lower", "upper", "integer"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_an_epigraph_without_a_bound_gets_one():
    """min a, a >= |x - 0.25| with x from -1 to 1, in two rows: a is 1.25 at most."""
    given = problem_of(
        [[-1.0, 0.0, 1.0], [1.0, 0.0, 1.0]], [-0.25, 0.25], INF, [-1.0, -INF, -INF], [1.0, INF, INF],
        cost=[0.0, 0.0, 1.0],
    )  # fmt: skip
    assert presolved(given).problem.mip.upper[2] == pytest.approx(1.25, abs=1e-6)
