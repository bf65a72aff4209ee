"""What is attached to a model: found again, named once, and as fast for the last as for the first."""

import logging

import pytest

import dovetail as dt
from tests.small import linear_net
from tests.tools import Gurobi


def test_a_model_without_ties_says_so(caplog):
    model = Gurobi().new()
    x = model.addVar(ub=4)
    dt.add_predictor_constr(model, linear_net([0.5]), [x])
    with caplog.at_level(logging.INFO, logger="dovetail"):
        dt.solve(model.copy(), time_limit=5, log=False)
    assert "no predictor is tied to this gurobipy model" in caplog.text


def test_many_small_ties_do_not_slow_each_other_down(monkeypatch):
    """Variables are looked up as often for the last of many ties as for the first."""
    from dovetail.modelling import attach

    counted = []
    monkeypatch.setattr(attach, "locate", lambda *given: counted.append(1) or locate(*given))
    from dovetail.core.foreign import locate

    model = Gurobi().new()
    x = model.addMVar((30, 1), ub=1)
    calls = []
    for i in range(30):
        before = len(counted)
        dt.add_predictor_constr(model, linear_net([1.0]), x[i])
        calls.append(len(counted) - before)
    assert set(calls[1:]) == {calls[1]}


def test_a_name_must_be_free_but_a_peers_prefix_need_not():
    model = Gurobi().new()
    x = model.addMVar((3, 1), ub=1)
    names = [
        dt.add_predictor_constr(model, linear_net([1.0]), x[i], unique_naming_prefix="p_").name
        for i in range(3)
    ]
    assert len(set(names)) == 3 and names[0] == "p"
    with pytest.raises(dt.PredictorError, match="already a block called 'p'"):
        dt.add_predictor_constr(model, linear_net([1.0]), x[0], name="p")
