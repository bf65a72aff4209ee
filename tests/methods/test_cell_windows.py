"""Windows around a point of tree ensembles: on small problems they hold everything, the optimum too."""

import pytest

import dovetail as dt
from dovetail.methods.cell_descent import CellDescent
from dovetail.methods.cell_windows import CellWindows
from tests.conftest import FULL
from tests.tree_problems import enumerated, random_problem


@pytest.mark.parametrize("seed", range(60) if FULL else (1, 3, 10, 13))
def test_the_best_of_a_window_that_holds_everything_is_the_optimum(seed):
    problem = random_problem(seed)
    first = dt.solve(problem, CellDescent(rounds=1, kicks=0), log=False)
    if first.x is None:
        return
    result = dt.solve(problem, CellWindows(rounds=4), start=first.x, log=False)
    best, sign = enumerated(problem), problem.mip.sign
    assert dt.check(problem, result.x).within()
    assert sign * result.objective <= sign * first.objective
    assert abs(result.objective - best) <= 1e-5 * (1.0 + abs(best))


def test_others_are_left_alone():
    problem = dt.Problem(dt.Mip([-1.0, 1.0], upper=3.0))
    problem.add_predictor(lambda X: X**2, [0], [1])
    assert "no tree ensemble" in dt.solve(problem, CellWindows(), log=False).message


def test_options_are_looked_at():
    with pytest.raises(dt.OptionError, match="patience"):
        CellWindows(patience=0)
