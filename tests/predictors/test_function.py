"""Functions asked with care: kept answers, whole numbers, a limit, rows, and what float32 resolves."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.core.predictor import as_predictor


class Simulator:
    """Counts what it is asked; knows whole numbers from 0 to 5 only."""

    def __init__(self):
        self.rows = []

    def __call__(self, X):
        assert np.array_equal(X, np.round(X)), X
        assert X.min() >= 0.0 and X.max() <= 5.0, X
        self.rows += [row.tobytes() for row in X]
        return (X[:, 0] - 3.0) ** 2 + np.abs(X[:, 1] - X[:, 0]) - 0.5 * X[:, 1]


def planned(function, upper=5.0, integer=True):
    mip = dt.Mip(
        cost=[0.1, 0.2, 1.0],
        lower=[0.0, 0.0, -99.0],
        upper=[upper, upper, 99.0],
        integer=[integer, integer, False],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(function, [0, 1], [2])
    return problem


def test_a_whole_solve_asks_whole_numbers_within_bounds_and_no_row_twice():
    simulator = Simulator()
    function = dt.Function(simulator, integer_only=True)
    result = dt.solve(planned(function), log=False)
    grid = np.array([[a, b] for a in range(6) for b in range(6)], dtype=float)
    best = np.min(
        grid @ [0.1, 0.2] + (grid[:, 0] - 3) ** 2 + np.abs(grid[:, 1] - grid[:, 0]) - 0.5 * grid[:, 1]
    )
    assert result.objective == pytest.approx(best, abs=1e-9)
    assert len(simulator.rows) - len(set(simulator.rows)) == 1  # one, to see that it says the same again
    assert function.evaluations == len(simulator.rows)


def test_a_search_without_a_table_asks_whole_numbers_too():
    simulator = Simulator()
    function = dt.Function(simulator, integer_only=[0, 1])
    problem = planned(function)
    result = dt.solve(problem, dt.DualDecomposition(iterations=2), log=False)
    assert result.x is not None
    assert dt.check(problem, result.x).within()


def test_columns_must_be_integer():
    with pytest.raises(dt.PredictorError, match=r"feature 0 of Simulator accepts integers.*x\[0\].*integer"):
        planned(dt.Function(Simulator(), integer_only=True), integer=False)
    with pytest.raises(dt.PredictorError, match=r"integer_only is \[2\], but there are 2 features"):
        planned(dt.Function(Simulator(), integer_only=[2]))


def test_the_limit_ends_a_solve_with_the_best_point():
    asked = []

    def slow(X):
        asked.extend(X)
        return np.sin(3.0 * X[:, 0]) * X[:, 1]

    function = dt.Function(slow, max_evaluations=120)
    problem = planned(function, upper=30.0, integer=False)
    result = dt.solve(problem, log=False)
    assert result.stop_reason == "evaluations"
    assert result.status == "feasible"
    assert len(asked) == function.evaluations <= 120
    assert dt.check(problem, result.x).within()  # which asks about a row that it knows
    assert function.evaluations <= 120


def test_a_limit_too_small_to_look_at_it():
    with pytest.raises(dt.PredictorError, match="more would exceed max_evaluations=5"):
        planned(dt.Function(lambda X: X[:, 0], max_evaluations=5))


def test_copies_share_what_is_known():
    function = dt.Function(lambda X: X.sum(axis=1))
    rows = np.arange(6.0).reshape(3, 2)
    twin = copy.copy(function)
    assert np.array_equal(function.predict(rows), twin.predict(np.concatenate([rows, -0.0 * rows]))[:3])
    assert function.evaluations == twin.evaluations == 4  # zeros of either sign are one row
    assert function.predict(rows[:0]).shape == (0, 1)


def test_slopes_of_whole_numbers_are_differences_of_neighbours():
    simulator = Simulator()
    function = dt.Function(simulator, integer_only=[0], name="plan")
    assert function.name == "plan"
    function = dt.Function(lambda X: X[:, 0] ** 2 + np.sin(X[:, 1]), integer_only=[0])
    function.predict(np.array([[0.0, -1.0], [4.0, 2.0]]))  # what was asked before: nothing beyond it is
    u = torch.tensor([[1.2, 0.5], [4.0, 0.0], [0.0, 0.3]], dtype=torch.float64, requires_grad=True)
    values = function.snapshot("cpu")(u)
    (slope,) = torch.autograd.grad(values.sum(), u)
    assert np.allclose(slope[:, 0], [2.0, 7.0, 1.0])  # (4 - 0) / 2, then to one side each
    assert np.allclose(slope[:, 1], np.cos([0.5, 0.0, 0.3]), atol=1e-6)


def test_what_depends_on_chance_or_on_other_rows_is_not_hidden():
    rng = np.random.default_rng(0)
    with pytest.raises(dt.PredictorError, match="for the same sample; it must depend neither on chance"):
        planned(dt.Function(lambda X: rng.normal(size=len(X))))
    with pytest.raises(dt.PredictorError, match="nor on the other samples"):
        planned(dt.Function(lambda X: X[:, 0] - X[:, 0].mean()))


class TestRows:
    def test_a_function_of_one_row(self):
        function = dt.Function(lambda row: float(row[0] * row[1]), row_by_row=True)
        assert np.array_equal(function.predict(np.array([[2.0, 3.0], [1.0, 4.0]])), [[6.0], [4.0]])
        two = dt.Function(lambda row: [row[0], row.sum()], row_by_row=True)
        assert np.array_equal(two.predict(np.array([[2.0, 3.0]])), [[2.0, 5.0]])

    @pytest.mark.parametrize(
        "scalar",
        [
            lambda row: float(row[0] * row[1]),
            lambda row: row[0] * row[1],
            lambda row: row[0] if row[0] > row[1] else row[1],
            lambda row: np.hypot(*row),
        ],
    )
    def test_one_that_is_passed_as_it_is_gets_a_hint_that_fits(self, scalar):
        words = r"one sample of 2 features.*Function\(f, row_by_row=True\)"
        with pytest.raises(dt.PredictorError, match=words):
            planned(scalar)

    def test_a_function_that_is_just_wrong_gets_no_such_hint(self):
        with pytest.raises(dt.PredictorError, match="must return") as caught:
            planned(lambda X: np.zeros((3, 3)) if X.ndim == 2 else 1 / 0)
        assert "row_by_row" not in str(caught.value)
        with pytest.raises(dt.PredictorError, match="no such file"):
            planned(_fails)


def _fails(X):
    raise OSError("no such file")


class TestFloat32:
    def test_a_network_that_answers_in_float32(self):
        net = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 1))

        def inside(X):
            with torch.no_grad():
                return net(torch.tensor(X, dtype=torch.float32)).numpy()

        for function in (inside, dt.Function(inside)):
            problem = planned(function, integer=False)
            description = problem.blocks[0].description
            assert description.dtypes == ("float32",)
            assert not description.has_float64_copy
            X = np.random.default_rng(0).uniform(0, 5, (20, 2))
            u = torch.tensor(X, requires_grad=True)
            (slope,) = torch.autograd.grad(problem.blocks[0].predictor.snapshot("cpu")(u).sum(), u)
            v = torch.tensor(X, requires_grad=True)
            (exact,) = torch.autograd.grad(copy.deepcopy(net).double()(v).sum(), v)
            assert torch.allclose(slope, exact, atol=2e-3)
        result = dt.solve(problem, dt.Auto(effort=1), log=False)
        assert result.x is not None
        assert dt.check(problem, result.x).within()

    def test_one_whose_answers_differ_from_batch_to_batch_by_as_much(self):
        def inside(X):  # a sum in another order in every size of a batch
            return X[:, 0] + X[:, 1] + 1e-6 * (len(X) == 1)

        assert planned(inside).blocks[0].description.dtypes == ("float32",)
        with pytest.raises(dt.PredictorError, match="changes with the other samples"):
            planned(lambda X: X[:, 0] + 1e-2 * (len(X) == 1))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"integer_only": "all"}, "integer_only is 'all'"),
        ({"integer_only": [0.5]}, "numbers of features"),
        ({"max_evaluations": 0}, "max_evaluations is 0"),
        ({"max_evaluations": True}, "max_evaluations is True"),
    ],
)
def test_options_are_checked(options, words):
    with pytest.raises(dt.PredictorError, match=words):
        dt.Function(len, **options)
    with pytest.raises(dt.PredictorError, match="takes a function"):
        dt.Function(3)


def test_a_float64_function_stays_one():
    assert as_predictor(lambda X: X[:, 0]).describe(np.zeros((3, 1))).is_float64
