"""Cell descent finds points, good ones, and says when it cannot."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

import dovetail as dt
from dovetail.core.errors import EngineError
from dovetail.methods.cell_descent import CellDescent, method
from dovetail.mip import answers
from dovetail.solving import host
from tests.predictors.trees import models
from tests.tree_problems import enumerated, random_problem


def test_its_points_are_nearly_always_the_best():
    """Of problems that have one."""
    met = count = 0
    for seed in range(600, 606):
        problem = random_problem(seed)
        best = enumerated(problem)
        if best is None:
            continue
        result = dt.solve(problem, CellDescent(rounds=4, kicks=6), log=False)
        assert result.x is not None
        assert dt.check(problem, result.x).within()
        sign = problem.mip.sign
        assert sign * result.objective >= sign * best - 2e-6 * (1.0 + abs(best))
        count += 1
        met += abs(result.objective - best) <= 2e-6 * (1.0 + abs(best))
    assert met >= 0.8 * count > 0


def test_a_row_that_the_first_point_misses_is_met_in_the_end():
    """y >= 3 takes a move of several inputs; the host alone begins at y well below."""
    model = models.model("sklearn", "GradientBoostingRegressor")
    ensemble = model.predict(models.data()[0])
    mip = dt.Mip(
        [1.0, 1.0, 1.0, 0.0], lower=[-9.0] * 3 + [np.quantile(ensemble, 0.9)], upper=[9.0] * 3 + [99.0]
    )
    problem = dt.Problem(mip)
    problem.add_predictor(model, [0, 1, 2], [3])
    result = dt.solve(problem, CellDescent(rounds=3), log=False)
    assert result.x is not None and dt.check(problem, result.x).within()


@pytest.mark.parametrize("dumb", ["", "highs"])
def test_integers_that_no_mip_in_the_cells_can_choose_in_time(monkeypatch, dumb):
    """2 i + 3 j + 5 k = 17 x + 1 with x in a cell of its own: the host alone has a point, and it is taken."""
    monkeypatch.setattr(method, "MIP_SECONDS", 0.0)
    monkeypatch.setattr(host, "MOST_SECONDS", 0.0)  # of the question before the search
    asked, engine_for = [], answers.engine_for

    def answering(name, mip, columns):
        asked.append(name)
        if name == dumb:
            raise EngineError("it failed")
        return engine_for(name, mip, columns)

    monkeypatch.setattr(answers, "engine_for", answering)
    tree = DecisionTreeRegressor().fit(np.arange(4.0)[:, None], [3.0, 1.0, 2.0, 0.5])
    mip = dt.Mip(
        cost=[0.0, 0.0, 0.0, 0.01, 1.0],
        A=[[2.0, 3.0, 5.0, -17.0, 0.0]],
        row_lower=[1.0],
        row_upper=[1.0],
        lower=[0.0, 0.0, 0.0, 0.3, -9.0],
        upper=[9.0, 9.0, 9.0, 3.0, 9.0],
        integer=[True, True, True, False, False],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(tree, [3], [4])
    result = dt.solve(problem, CellDescent(rounds=3, kicks=0), log=False)
    assert result.x is not None and dt.check(problem, result.x).within()
    assert result.source == "host"
    assert ("scip" in asked) == (dumb == "highs")


def test_networks_are_left_to_others():
    problem = dt.Problem(dt.Mip([1.0, 1.0], lower=-1.0, upper=1.0))
    problem.add_predictor(lambda X: X**2, [0], [1])
    result = dt.solve(problem, CellDescent(), log=False)
    assert result.iterations == 0 and "not a readable tree ensemble" in result.message


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"patience": 0}, {"kicks": -1}])
def test_options(wrong):
    with pytest.raises(dt.OptionError, match=f"CellDescent: {next(iter(wrong))}"):
        CellDescent(**wrong)
