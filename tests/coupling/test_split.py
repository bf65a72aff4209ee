"""Cutting a problem in two: which form each block gets, and where rows and bounds go."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.coupling.assemble import network_block
from dovetail.coupling.split import split
from dovetail.run.work import Stopwatch
from tests.small import knapsack, linear_net, random_mlp


def problem_of(rows, sides, columns=6, output_type="regression", integer=(), upper=None, q=1, extra=None):
    """Columns 0..2 are inputs, 3.. outputs, the rest belongs to nobody."""
    A = np.zeros((len(rows), columns))
    for i, row in enumerate(rows):
        for j, a in row.items():
            A[i, j] = a
    whole = np.zeros(columns, bool)
    whole[list(integer)] = True
    lower = np.where(np.arange(columns) < 3, -1.0, -np.inf)
    high = np.where(np.arange(columns) < 3, 1.0, np.inf)
    if output_type == "classification":
        lower[3 : 3 + q], high[3 : 3 + q] = 0.0, 1.0
    for j, value in (upper or {}).items():
        high[j] = value
    for j, value in (extra or {}).items():
        lower[j] = value
    mip = dt.Mip(
        cost=np.arange(columns) + 1.0,
        A=A,
        row_lower=[low for low, _ in sides],
        row_upper=[high for _, high in sides],
        lower=lower,
        upper=high,
        integer=whole,
        row_names=[f"r{i}" for i in range(len(rows))] if rows else None,
    )
    problem = dt.Problem(mip)
    problem.add_predictor(
        random_mlp(3, q), [0, 1, 2], list(range(3, 3 + q)), output_type=output_type, name="net"
    )
    return problem


def test_an_output_on_its_own_leaves_the_mip_with_its_cost():
    cut = split(problem_of([{0: 1.0, 1: 1.0}], [(-np.inf, 1.0)]))
    (part,) = cut.parts
    assert not part.couples_outputs
    assert cut.mip.cost[3] == 0.0
    assert cut.mip.lower[3] == cut.mip.upper[3]
    assert cut.mip.n_rows == 1  # rows on inputs alone stay
    assert cut.columns.tolist() == [0, 1, 2]


def test_rows_on_own_inputs_and_outputs_go_with_the_network():
    cut = split(problem_of([{0: 2.0, 3: 1.0}, {0: 1.0, 5: 1.0}], [(-1.0, 4.0), (0.0, 1.0)], upper={3: 9.0}))
    (part,) = cut.parts
    assert not part.couples_outputs
    assert cut.mip.n_rows == 1
    assert cut.mip.row_names == ("r1",)
    row, bound = part.rows[0]
    assert row.on_inputs.tolist() == [2.0, 0.0, 0.0]
    assert row.on_outputs.tolist() == [1.0]
    assert (row.lower, row.upper, row.name) == (-1.0, 4.0, "r0")
    assert (bound.lower, bound.upper) == (-np.inf, 9.0)
    assert "x[3]" in bound.name


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"rows": [{3: 1.0, 5: 1.0}], "sides": [(0.0, 1.0)]}, "meets a column outside"),
        ({"rows": [], "sides": [], "integer": (3,)}, "must be integer"),
    ],
)
def test_an_output_that_meets_others_is_coupled_too(change, why):
    cut = split(problem_of(**change))
    (part,) = cut.parts
    assert part.couples_outputs, why
    assert cut.mip.cost[3] == 4.0
    assert cut.columns.tolist() == [0, 1, 2, 3]
    assert cut.mip.n_rows == len(change["rows"])


def test_chained_blocks_couple_the_output_in_between():
    mip = dt.Mip(cost=np.ones(4), lower=-1.0, upper=[1.0, 1.0, 9.0, 9.0])
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([1.0, 1.0]), [0, 1], [2], name="first")
    problem.add_predictor(linear_net([1.0]), [2], [3], name="second")
    first, second = split(problem).parts
    assert first.couples_outputs
    assert not second.couples_outputs


def test_samples_that_share_a_row_are_coupled():
    mip = dt.Mip(
        cost=np.ones(4), A=[[0.0, 0.0, 1.0, 1.0]], row_lower=[0.0], row_upper=[1.0], lower=-1.0, upper=1.0
    )
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([1.0]), [[0], [1]], [[2], [3]])
    assert split(problem).parts[0].couples_outputs


def test_declaring_a_class_integer_changes_nothing():
    cut = split(problem_of([], [], output_type="classification", integer=(3,)))
    assert not cut.parts[0].couples_outputs


@pytest.mark.parametrize(("bounds", "wanted"), [((1.0, 1.0), 1), ((0.0, 0.0), 0), ((0.0, 1.0), None)])
def test_a_fixed_class_becomes_a_limit_on_the_logit(bounds, wanted):
    problem = problem_of([], [], output_type="classification", extra={3: bounds[0]}, upper={3: bounds[1]})
    (part,) = split(problem).parts
    assert part.classes == (wanted,)
    network = network_block(
        part,
        problem.mip.lower,
        problem.mip.upper,
        np.ones(6),
        {part.name: np.zeros((4, 3))},
        None,
        Stopwatch(),
    )
    if wanted is None:
        assert network.rows is None
    else:
        assert float(network.rows.on_values[0, 0, 0]) == (1.0 if wanted else -1.0)
        assert float(network.rows.lower[0, 0]) == 1e-4


def test_one_of_three_classes_becomes_two_limits_and_two_stay_with_the_mip():
    one = problem_of([], [], output_type="classification", q=3, extra={4: 1.0})
    (part,) = split(one).parts
    assert part.classes == (1,)
    network = network_block(
        part, one.mip.lower, one.mip.upper, np.ones(6), {part.name: np.zeros((4, 3))}, None, Stopwatch()
    )
    assert network.rows.on_values[0].tolist() == [[-1.0, 1.0, 0.0], [0.0, 1.0, -1.0]]
    two = problem_of([], [], output_type="classification", q=3, upper={4: 0.0})
    assert split(two).parts[0].couples_outputs


def test_a_class_in_a_row_with_its_inputs_is_coupled():
    cut = split(problem_of([{0: 1.0, 3: 1.0}], [(-np.inf, 1.0)], output_type="classification"))
    assert cut.parts[0].couples_outputs
    assert cut.mip.n_rows == 1


def test_the_cut_is_made_on_the_minimised_problem():
    assert split(knapsack("max")).mip.cost[0] == -1.0
