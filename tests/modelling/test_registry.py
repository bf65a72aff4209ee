"""Names of what is attached to one model."""

import pytest

import dovetail as dt
from dovetail.modelling import predictor_constr as attachment
from dovetail.modelling.predictor_constr import attached_to
from tests.modelling.tiny import in_gurobi, times


def test_a_name_must_be_free_but_a_peers_prefix_need_not():
    model = in_gurobi()
    x = model.addMVar((3, 1), ub=1)
    names = [
        dt.add_predictor_constr(model, times(1.0), x[i], unique_naming_prefix="p_").name for i in range(3)
    ]
    assert len(set(names)) == 3 and names[0] == "p"
    with pytest.raises(dt.PredictorError, match="already a block called 'p'"):
        dt.add_predictor_constr(model, times(1.0), x[0], name="p")


def test_looking_keeps_nothing():
    model = in_gurobi()
    assert attached_to(model) == () and model not in attachment._registries
    x = model.addVar()
    dt.add_predictor_constr(model, times(1.0), [x], name="one")
    assert [attached.name for attached in attached_to(model)] == ["one"]
