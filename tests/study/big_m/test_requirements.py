"""Where SCIP's bound is taken, and where it is not."""

import numpy as np
import pytest
from torch import nn

import dovetail as dt
from dovetail.bounds.box import Box
from dovetail_study.big_m.method import one_binary_decides
from tests.small import linear_net, random_mlp


def hanging_on(lower, upper, integer) -> dt.Problem:
    """min y where y is a network of two inputs with these bounds."""
    mip = dt.Mip(
        cost=[0.0, 0.0, 1.0], lower=[*lower, -np.inf], upper=[*upper, np.inf], integer=[*integer, False]
    )
    problem = dt.Problem(mip)
    problem.add_predictor(random_mlp(2, seed=3), [0, 1], [2])
    return problem


@pytest.mark.parametrize(
    ("lower", "upper", "integer", "expected"),
    [
        ([0.5, 0.0], [0.5, 1.0], [False, True], True),
        ([0.0, 0.0], [1.0, 1.0], [True, True], False),
        ([0.5, 0.0], [0.5, 2.0], [False, True], False),
        ([0.5, 0.0], [0.5, 1.0], [False, False], False),
        ([0.5, 1.0], [0.5, 1.0], [False, True], False),
    ],
)
def test_a_network_that_hangs_on_one_binary(lower, upper, integer, expected):
    problem = hanging_on(lower, upper, integer)
    assert one_binary_decides(problem, Box(problem.mip.lower, problem.mip.upper)) is expected


def test_a_second_network_may_hang_on_it_through_the_first():
    mip = dt.Mip(cost=[0.0, 0.0, 0.0, 1.0], lower=[0.0, 0.0, -9.0, -9.0], upper=[1.0, 1.0, 9.0, 9.0],
                 integer=[True, False, False, False])  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(random_mlp(2), [0, 1], [2])
    problem.add_predictor(linear_net([1.0]), [2], [3])
    box = Box(mip.lower, mip.upper)
    assert not one_binary_decides(problem, box)
    fixed = Box(mip.lower, np.array([1.0, 0.0, 9.0, 9.0]))
    assert one_binary_decides(problem, fixed)


def test_no_proof_is_taken_from_scip_where_one_binary_decides():
    """SCIP 10.0.2 has called the worse of two points optimal there: its presolve had fixed the binary."""
    one = dt.solve(hanging_on([0.5, 0.0], [0.5, 1.0], [False, True]), "big-m", log=False)
    assert one.written.said == "optimal" and one.written.end == "other"
    assert one.status == "feasible" and "proven bound" not in one.message
    two = dt.solve(hanging_on([0.0, 0.0], [1.0, 1.0], [True, True]), "big-m", log=False)
    assert two.status == "optimal" and two.written.end == "proved"


@pytest.mark.parametrize("layer", [nn.Conv1d(1, 2, 3), nn.LSTM(4, 3)])
def test_what_our_writer_refuses_pyscipopt_ml_refuses_itself(layer):
    """The paper's claim is about that library, not about what we make of it."""
    scip, theirs = pytest.importorskip("pyscipopt"), pytest.importorskip("pyscipopt_ml.add_predictor")
    errors = pytest.importorskip("pyscipopt_ml.exceptions")
    model = scip.Model()
    inputs = np.array([[model.addVar(lb=0.0, ub=1.0) for _ in range(4)]], dtype=object)
    with pytest.raises(errors.NoModel, match=type(layer).__name__):
        theirs.add_predictor_constr(model, nn.Sequential(layer, nn.Linear(3, 1)), inputs)
