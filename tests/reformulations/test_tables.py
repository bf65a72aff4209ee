"""Tables: the extended MIP, solved by scipy, says what enumeration through the networks says.

Long tables: asked for where that is in time and allowed, each row once; known optima.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.bounds.box import propagate
from dovetail.core.probe import probe_points
from dovetail.reformulations import tables
from dovetail.reformulations import tables as tabulation
from dovetail.reformulations.reformulated import Reformulated
from dovetail.reformulations.tables import Tables, answers_within, may_have_tables
from tests.conftest import FULL
from tests.contexts import best_of, breach, by_scipy, choices
from tests.small import linear_net, random_mlp

ROUNDS = 6 if FULL else 2


def tabulated(problem, box):
    return Tables().apply(Reformulated.start(problem, box))


def host(lower, upper, outputs, rng, *, sense="min", rows=1, classes=0):
    """Integers between `lower` and `upper`, then free outputs (the last `classes` of them 0 or 1)."""
    k = len(lower)
    columns = k + outputs
    A = np.zeros((rows, columns))
    A[:, :k] = rng.normal(size=(rows, k))
    middle = A[:, :k] @ np.round(0.5 * (np.asarray(lower) + np.asarray(upper)))
    free = np.full(outputs, np.inf)
    low, high = -free, free.copy()
    if classes:
        low[-classes:], high[-classes:] = 0.0, 1.0
    return dt.Mip(
        cost=np.concatenate([rng.normal(0, 0.3, k), rng.normal(0, 1.0, outputs)]),
        A=A,
        row_lower=-np.inf,
        row_upper=middle + 0.5,
        lower=np.concatenate([lower, low]),
        upper=np.concatenate([upper, high]),
        integer=np.concatenate([np.ones(k, bool), np.zeros(outputs, bool)]),
        sense=sense,
    )


def binaries(rng):
    problem = dt.Problem(host(np.zeros(4), np.ones(4), 1, rng))
    problem.add_predictor(random_mlp(4, seed=int(rng.integers(1000))), [0, 1, 2, 3], [4])
    return problem


def one_binary_each(rng):
    problem = dt.Problem(host(np.zeros(3), np.ones(3), 3, rng, sense="max"))
    problem.add_predictor(random_mlp(1, seed=int(rng.integers(1000))), [[0], [1], [2]], [[3], [4], [5]])
    return problem


def general_integers(rng):
    problem = dt.Problem(host([-1.0, 2.0], [2.0, 5.0], 1, rng))
    problem.add_predictor(random_mlp(2, seed=int(rng.integers(1000))), [1, 0], [2])
    return problem


def integers_of_two_values(rng):
    """3 or 4 and -2 or -1: as good as binaries."""
    problem = dt.Problem(host([3.0, -2.0], [4.0, -1.0], 2, rng))
    problem.add_predictor(random_mlp(2, seed=int(rng.integers(1000))), [0, 1], [2])
    problem.add_predictor(random_mlp(1, seed=int(rng.integers(1000))), [1], [3])
    return problem


def fixed_inputs(rng):
    lower, upper = np.zeros(4), np.ones(4)
    lower[1] = upper[1] = 1.0
    problem = dt.Problem(host(lower, upper, 2, rng))
    problem.add_predictor(random_mlp(3, seed=int(rng.integers(1000))), [0, 1, 3], [4])
    problem.add_predictor(random_mlp(1, seed=int(rng.integers(1000))), [1], [5])
    return problem


def repeated_columns(rng):
    problem = dt.Problem(host(np.zeros(2), [1.0, 2.0], 2, rng))
    inputs = [[0, 1, 0], [1, 1, 0]]
    problem.add_predictor(random_mlp(3, seed=int(rng.integers(1000))), inputs, [[2], [3]])
    return problem


def several_outputs(rng):
    problem = dt.Problem(host(np.zeros(3), [1.0, 1.0, 2.0], 3, rng))
    problem.add_predictor(random_mlp(3, 3, seed=int(rng.integers(1000))), [2, 0, 1], [3, 4, 5])
    return problem


def a_class(rng):
    problem = dt.Problem(host(np.zeros(3), np.ones(3), 1, rng, classes=1))
    net = random_mlp(3, seed=int(rng.integers(1000)))
    problem.add_predictor(net, [0, 1, 2], [3], output_type="classification")
    return problem


def three_classes(rng):
    problem = dt.Problem(host(np.zeros(3), np.ones(3), 3, rng, classes=3))
    net = random_mlp(3, 3, seed=int(rng.integers(1000)))
    problem.add_predictor(net, [0, 1, 2], [3, 4, 5], output_type="classification")
    return problem


def a_class_that_feeds_another_block(rng):
    problem = dt.Problem(host(np.zeros(3), np.ones(3), 2, rng, classes=1))
    problem.add_predictor(
        random_mlp(3, seed=int(rng.integers(1000))), [0, 1, 2], [4], output_type="classification"
    )
    problem.add_predictor(random_mlp(2, seed=int(rng.integers(1000))), [4, 0], [3])
    return problem


KINDS = (
    binaries,
    one_binary_each,
    general_integers,
    integers_of_two_values,
    fixed_inputs,
    repeated_columns,
    several_outputs,
    a_class,
    three_classes,
    a_class_that_feeds_another_block,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_the_table_is_the_problem(kind, seed):
    problem = kind(np.random.default_rng(seed))
    reformulated = tabulated(problem, propagate(problem.mip))
    assert reformulated is not None
    assert reformulated.problem.blocks == ()
    mip = reformulated.problem.mip
    assert mip.n_columns - problem.mip.n_columns <= tabulation.MOST_COLUMNS
    points = choices(problem)
    truth = best_of(problem, points)
    found = by_scipy(mip)
    assert (truth is None) == (found is None)
    if truth is None:
        return
    assert found[0] == pytest.approx(truth[0], abs=1e-5)
    # the MIP's point is true to the networks, not only its objective
    x = reformulated.restrict(found[1])
    assert problem.predict(np.where(problem.mip.integer, np.round(x), x)) == pytest.approx(x, abs=1e-5)
    # and every feasible point of the problem is one of the extended MIP
    feasible = [x for x in points if breach(problem.mip, x) <= 1e-9]
    for x in feasible[:: max(1, len(feasible) // 20)]:
        lifted = reformulated.lift(x)
        assert lifted.size == mip.n_columns
        assert reformulated.restrict(lifted) is not x and np.array_equal(reformulated.restrict(lifted), x)
        assert breach(mip, lifted) <= 1e-9


def test_the_table_has_no_other_points():
    """Weights of a table over binaries are continuous: with x whole they leave y no choice."""
    problem = several_outputs(np.random.default_rng(5))
    mip = tabulated(problem, propagate(problem.mip)).problem.mip
    rng = np.random.default_rng(0)
    for x in choices(problem)[::3]:
        held, upper = mip.lower.copy(), mip.upper.copy()
        held[:3] = upper[:3] = x[:3]
        cost = np.zeros(mip.n_columns)
        cost[3:6] = rng.normal(size=3)
        open_host = np.where(np.arange(mip.n_rows) < 1, np.inf, mip.row_upper)
        free = replace(mip, cost=cost, lower=held, upper=upper, row_upper=open_host)
        objective, _ = by_scipy(free)
        assert objective == pytest.approx(cost[3:6] @ x[3:6], abs=1e-6)


def test_continuous_inputs_are_left_alone():
    mip = dt.Mip(
        cost=np.zeros(6), lower=0.0, upper=[1.0, 1.0, 1.0, np.inf, np.inf, np.inf],
        integer=[True, True, False, False, False, False],
    )  # fmt: skip
    problem = dt.Problem(mip)
    net = random_mlp(2)
    block = problem.add_predictor(net, [[0, 1], [0, 2], [1, 1]], [[3], [4], [5]])
    reformulated = tabulated(problem, propagate(mip))
    (left,) = reformulated.problem.blocks
    assert left.predictor is block.predictor
    assert left.inputs.tolist() == [[0, 2]]
    assert left.outputs.tolist() == [[4]]
    assert reformulated.problem.outputs.tolist() == [4]
    x = problem.predict(np.array([1.0, 0.0, 0.3, 0.0, 0.0, 0.0]))
    assert breach(replace_lower(reformulated.problem.mip), reformulated.lift(x)) <= 1e-9
    assert reformulated.problem.predict(reformulated.lift(x)) == pytest.approx(reformulated.lift(x))


def replace_lower(mip):
    """Outputs without a lower bound: only rows are asked about."""
    lower = mip.lower.copy()
    lower[3:6] = -np.inf
    return replace(mip, lower=lower)


def test_without_a_table_there_is_nothing():
    mip = dt.Mip(cost=np.zeros(3), lower=0.0, upper=[1.0, 1.0, 9.0], integer=[True, False, False])
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([1.0, 1.0]), [0, 1], [2])
    assert tabulated(problem, propagate(mip)) is None


def test_a_function_whose_inputs_rows_fix_is_one_answer():
    sides = [1.0, 0.25]
    mip = dt.Mip([0.0, 0.0, 1.0], A=[[2.0, 0.0, 0.0], [1.0, -1.0, 0.0]], row_lower=sides, row_upper=sides,
        lower=[-3.0, -3.0, -np.inf], upper=[3.0, 3.0, np.inf])  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(lambda X: np.sin(X.sum(axis=1)), [0, 1], [2])
    result = dt.solve(problem, time_limit=60, log=False)
    assert result.status is dt.Status.OPTIMAL
    assert result.objective == pytest.approx(np.sin(0.75), abs=1e-6)


def test_a_network_that_reads_a_class_may_have_a_table():
    problem = dt.Problem(dt.Mip([1.0, 1.0, 1.0], lower=0.0, upper=[1.0, 1.0, 9.0]))
    problem.add_predictor(lambda X: X - 0.5, [0], [1], output_type="classification", threshold=0.0)
    assert not may_have_tables(problem)
    problem.add_predictor(lambda X: 2.0 * X, [1], [2])
    assert may_have_tables(problem)


@pytest.mark.parametrize(("predictor", "written"), [("network", True), ("function", False)])
def test_an_input_that_rows_make_of_integers_has_a_table_where_no_threshold_is_near(predictor, written):
    """Twice y = f(u, v) with 4 u = n, v = u + m / 2 - 1 and a number that both share."""
    rng = np.random.default_rng(3)
    net = random_mlp(2, seed=5)
    # n0, m0, u0, v0, y0, n1, m1, u1, v1, y1
    A = np.zeros((5, 10))
    for k in (0, 5):
        A[k // 5, [k, k + 2]] = 1.0, -4.0
        A[2 + k // 5, [k + 1, k + 2, k + 3]] = 0.5, 1.0, -1.0
    A[4, [0, 5]] = 1.0
    sides = [0.0, 0.0, 1.0, 1.0]
    lower, upper = np.tile([0.0, 0.0, -9.0, -9.0, -np.inf], 2), np.tile([4.0, 2.0, 9.0, 9.0, np.inf], 2)
    whole = np.tile([True, True, False, False, False], 2)
    mip = dt.Mip(rng.normal(size=10), A=A, row_lower=[*sides, -np.inf], row_upper=[*sides, 5.0],
        lower=lower, upper=upper, integer=whole)  # fmt: skip
    problem = dt.Problem(mip)
    said = net if predictor == "network" else lambda X: net(torch.from_numpy(X)).detach().numpy()
    problem.add_predictor(said, [[2, 3], [7, 8]], [[4], [9]])
    assert may_have_tables(problem) is written
    made = tabulated(problem, propagate(problem.mip.minimised()))
    assert (made is not None) is written
    if made is None:
        return
    assert not made.problem.blocks
    objective, point = by_scipy(made.problem.mip)
    best = np.inf
    for n in np.ndindex(5, 3, 5, 3):
        if n[0] + n[2] <= 5.0:
            z = np.concatenate([[a, b, a / 4, a / 4 + b / 2 - 1, 0.0] for a, b in (n[:2], n[2:])])
            z[[4, 9]] = net(torch.from_numpy(z[[[2, 3], [7, 8]]])).detach().numpy()[:, 0]
            best = min(best, float(mip.cost @ z))
    assert objective == pytest.approx(best, abs=1e-7)
    assert breach(problem.mip, made.restrict(point)) <= 1e-6
    result = dt.solve(problem, time_limit=60, log=False)
    assert result.status is dt.Status.OPTIMAL and result.objective == pytest.approx(best, rel=1e-4)


def test_integers_without_bounds_are_left_alone():
    mip = dt.Mip(cost=np.zeros(2), lower=[0.0, -np.inf], integer=[True, False])
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([1.0]), [0], [1])
    assert tabulated(problem, propagate(mip)) is None


# --- values that no row can hold -------------------------------------------------------------------

SPIKES = [np.inf, -np.inf, np.nan, 1e16, -1e16, 1e20, -1e300]


def spiked(rng, value):
    """Whole numbers whose function has one value that no engine takes, where no probe looks."""
    width, count = int(rng.integers(1, 3)), 12
    points = np.array(list(np.ndindex(*[count] * width)), dtype=float)
    table = np.round(rng.normal(size=len(points)), 3)
    problem = dt.Problem(host(np.zeros(width), np.full(width, count - 1.0), 1, rng, rows=0))
    probed = {tuple(point) for point in probe_points(problem.mip, np.arange(width)[None])}
    free = [k for k, point in enumerate(points) if tuple(point) not in probed]

    def function(X):
        places = np.round(X).astype(int).clip(0, count - 1) @ (count ** np.arange(width)[::-1])
        return table[places][:, None]

    problem.add_predictor(function, list(range(width)), [width], name="spiky")
    table[rng.choice(free)] = value
    return problem, points, table


@pytest.mark.parametrize("value", SPIKES)
def test_what_no_row_can_hold_stays_a_block(value):
    for seed in range(4 if FULL else 1):
        problem, _, _ = spiked(np.random.default_rng(seed), value)
        assert tabulated(problem, propagate(problem.mip)) is None


@pytest.mark.parametrize("value", SPIKES)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning", "ignore:overflow:RuntimeWarning")
def test_such_a_problem_is_solved_and_nothing_false_is_said(value):
    for seed in range(6 if FULL else 1):
        problem, points, table = spiked(np.random.default_rng(seed), value)
        width = points.shape[1]
        start = np.append(points[0], table[0])
        result = dt.solve(problem, start=start, time_limit=0.7 if FULL else 0.3, log=False)
        worth = problem.mip.sign * (points @ problem.mip.cost[:width] + table * problem.mip.cost[width])
        best = np.min(worth[np.isfinite(table)])
        assert result.x is not None
        assert dt.check(problem, result.x).within()
        reached = problem.mip.sign * result.objective
        assert reached <= worth[0] + 1e-6
        if result.status == "optimal":
            assert reached <= best + 1e-6 * max(1.0, abs(best))
        if result.bound is not None:
            assert problem.mip.sign * result.bound <= best + 1e-6 * max(1.0, abs(best))


def test_one_bad_sample_leaves_the_others_their_tables():
    mip = dt.Mip(np.ones(4), lower=[0.0, 50.0, -np.inf, -np.inf], upper=[9.0, 90.0, np.inf, np.inf],
                 integer=[True, True, False, False])  # fmt: skip
    problem = dt.Problem(mip)
    spikes = []
    problem.add_predictor(lambda X: np.where(np.isin(X, spikes), np.inf, X), [[0], [1]], [[2], [3]])
    spikes.append(77.0)
    reformulated = tabulated(problem, propagate(mip))
    assert [block.inputs.tolist() for block in reformulated.problem.blocks] == [[[1]]]


def test_large_steps_at_large_places_are_no_line():
    """y = base + rise x loses its digits, or overflows, where x is large."""
    mip = dt.Mip([0.0, 1.0], lower=[1e12, -np.inf], upper=[1e12 + 1.0, np.inf], integer=[True, False])
    problem = dt.Problem(mip)
    problem.add_predictor(lambda X: 1e9 * (X - 1e12) - 5e8, [0], [1])
    assert tabulated(problem, propagate(mip)) is None
    result = dt.solve(problem, dt.Auto(effort=1), log=False)
    assert result.x is None or dt.check(problem, result.x).within()


class Moody(nn.Module):
    """A network whose last digit depends on how many rows it is asked for, as in any float32 it may."""

    def __init__(self, size):
        super().__init__()
        self.size = nn.Parameter(torch.tensor(size))

    def forward(self, x):
        values = self.size + x.sum(dim=1)
        return values if len(x) > 1 else torch.nextafter(values, torch.tensor(-np.inf))


@pytest.mark.parametrize("size", [1.0, 1e5])
def test_what_is_proved_holds_for_rows_that_are_asked_for_alone(size):
    mip = dt.Mip(
        cost=[0.0, 0.0, 1.0],
        A=[[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        row_lower=[1.0, size - 1.0],
        row_upper=[np.inf, np.inf],
        lower=[0.0, 0.0, -np.inf],
        upper=[3.0, 3.0, np.inf],
        integer=[True, True, False],
    )
    problem = dt.Problem(mip)
    block = problem.add_predictor(Moody(size), [0, 1], [2])
    reformulated = tabulated(problem, propagate(mip))
    assert reformulated.relaxed is not None
    objective, _ = by_scipy(reformulated.relaxed.problem.mip)
    alone = min(block.predictor.predict(np.array([x]))[0, 0] for x in ([1.0, 0.0], [0.0, 1.0]))
    together = by_scipy(reformulated.problem.mip)[0]
    assert objective <= alone < together
    assert objective >= together - 1e-6 * size


def test_a_class_that_another_batch_changes_is_left_open():
    """At x = 2 the value is 0 in a batch and a hair less alone."""
    mip = dt.Mip(cost=[0.0, 1.0], lower=[2.0, 0.0], upper=[3.0, 1.0], integer=True)
    problem = dt.Problem(mip)
    problem.add_predictor(Moody(-2.0), [0], [1], output_type="classification", threshold=0.0)
    reformulated = tabulated(problem, propagate(mip))
    assert by_scipy(reformulated.problem.mip)[0] == 1.0  # as it was answered, in a batch
    assert by_scipy(reformulated.relaxed.problem.mip)[0] == 0.0


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("nudge", [-1e-11, 0.0, 1e-11])
def test_a_class_that_the_order_of_a_sum_decides_is_left_open(outputs, nudge):
    """Sums of terms of 1e6 that cancel: float64 is off by about 1e-10, whoever adds them up."""
    network = nn.Sequential(nn.Linear(1, 3), nn.Linear(3, outputs)).double()
    with torch.no_grad():
        terms = [[1e6 / 3], [-1e6 / 7], [1e6 / 7 - 1e6 / 3]]
        network[0].weight.copy_(torch.tensor(terms, dtype=torch.float64))
        network[0].bias.zero_()
        network[1].weight.zero_()
        network[1].weight[-1] = 1.0
        network[1].bias.zero_()
        network[1].bias[-1] = nudge
    y = list(range(1, 1 + outputs))
    mip = dt.Mip(
        cost=[*[0.0] * outputs, 1.0],
        lower=[1.0, *[0.0] * outputs],
        upper=[3.0, *[1.0] * outputs],
        integer=True,
    )
    problem = dt.Problem(mip)
    problem.add_predictor(network, [0], y, output_type="classification")
    relaxed = tabulated(problem, propagate(mip)).relaxed.problem.mip
    assert by_scipy(relaxed)[0] == 0.0
    assert by_scipy(replace(relaxed, sense="max"))[0] == 1.0


def test_float64_needs_no_relaxed_problem():
    problem = general_integers(np.random.default_rng(0))
    assert tabulated(problem, propagate(problem.mip)).relaxed is None


def test_an_output_that_another_network_reads_is_between_its_answers():
    mip = dt.Mip(
        cost=[0.0, 0.0, 1.0],
        lower=[0.0, -np.inf, -np.inf],
        upper=[3.0, np.inf, np.inf],
        integer=[True, False, False],
    )
    problem = dt.Problem(mip)
    first = problem.add_predictor(Moody(1e5), [0], [1])
    problem.add_predictor(linear_net([1.0]), [1], [2])
    reformulated = tabulated(problem, propagate(mip))
    alone = first.predictor.predict(np.zeros((1, 1)))[0, 0]
    assert not np.any(reformulated.slack)
    relaxed = replace(
        reformulated.relaxed.problem.mip, cost=np.eye(reformulated.relaxed.problem.mip.n_columns)[1]
    )
    assert by_scipy(relaxed)[0] <= alone
    assert reformulated.box.lower[1] <= alone


class Clocked:
    """Takes so long for a call and for each row, by a clock of its own."""

    def __init__(self, monkeypatch, call, row):
        self.now, self.rows, self._call, self._row = 0.0, [], call, row
        monkeypatch.setattr(tables.time, "perf_counter", lambda: self.now)

    def predict(self, X):
        self.now += self._call + self._row * len(X)
        self.rows += X[:, 0].tolist()
        return X**2


@pytest.mark.parametrize(
    ("call", "row", "most"),
    [
        (0.0, 0.001, None),  # one second for all
        (0.3, 0.0, None),  # slow to begin with, whatever the number of rows
        (0.0, 1.0, 5),  # hopeless: seen after a tenth of the ten seconds
        (0.0, 0.011, 400),
    ],
)
def test_rows_are_asked_for_where_that_is_in_time(monkeypatch, call, row, most):
    clocked, X = Clocked(monkeypatch, call, row), np.arange(1000.0)[:, None]
    answers = answers_within(clocked, X, 10.0)
    assert len(set(clocked.rows)) == len(clocked.rows)
    if most is None:
        assert np.array_equal(answers, X**2)
    else:
        assert answers is None
        assert len(clocked.rows) <= most


def plan(function, shape=(16, 30)):
    """The least y with a limit on z and on the sum, over a box of whole numbers."""
    mip = dt.Mip(
        cost=[0.01, 0.0, 1.0, 0.0],
        A=[[1.0, 1.0, 0.0, 0.0]], row_lower=[-np.inf], row_upper=[40.0],
        lower=[0.0, 0.0, -np.inf, -np.inf], upper=[shape[0] - 1.0, shape[1] - 1.0, np.inf, 0.5],
        integer=[True, True, False, False],
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(function, [0, 1], [2, 3], name="plant")
    if isinstance(function, dt.Function):
        return problem
    X = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1).reshape(-1, 2).astype(float)
    said = np.asarray(problem.blocks[0].predictor.predict(X))
    held = (said[:, 1] <= 0.5) & (X.sum(axis=1) <= 40.0)
    return problem, float(np.min((said[:, 0] + 0.01 * X[:, 0])[held])), len(X)


def jumps(X):
    """Nothing that slopes lead through."""
    return np.stack([np.sin(X[:, 0] ** 2) + np.cos(7.0 * X[:, 1]), np.sin(X[:, 0] * X[:, 1])], axis=1)


def test_a_plain_function_of_whole_numbers_is_listed():
    problem, best, rows = plan(jumps)
    result = dt.solve(problem, log=False)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(best, abs=1e-6)
    assert result.evaluations <= rows + 10


def test_a_network_of_whole_numbers_is_listed():
    problem, best, _ = plan(random_mlp(2, 2, seed=1), (20, 40))
    result = dt.solve(problem, log=False)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(best, abs=1e-6)
    assert result.bound_source == "tables"


def test_a_function_is_not_asked_for_more_than_its_owner_allows():
    """A table that it would not finish is not begun: what it answers goes to the search."""
    function = dt.Function(jumps, max_evaluations=100, integer_only=True)
    result = dt.solve(plan(function, (12, 12)), log=False)
    assert function.evaluations <= 100
    assert result.stop_reason == "evaluations"
    assert result.x is not None
