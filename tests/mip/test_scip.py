"""What happens where SCIP gives up a run."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.errors import EngineError
from dovetail.mip import scip, scip_quadratic
from dovetail.mip.scip import last_word
from dovetail.run.budget import Budget
from dovetail.run.engine import Quadratic


class GivesUp:
    """A model as PySCIPOpt's, whose run ends in an error."""

    def __init__(self, reason):
        self._reason = reason

    def optimizeNogil(self):
        raise self._reason


def test_a_run_that_it_gives_up_has_no_answer():
    with pytest.raises(EngineError, match="SCIP gave up .*LP solver"):
        last_word(GivesUp(Exception("SCIP: error in LP solver!")))


@pytest.mark.parametrize("reason", [MemoryError(), KeyError("of somebody else")])
def test_other_errors_are_told(reason):
    with pytest.raises(type(reason)):
        last_word(GivesUp(reason))


def test_a_quadratic_program_that_it_gives_up_came_to_nothing(monkeypatch):
    mip = dt.Mip(cost=[0.0, 1.0], lower=[-1.0, -5.0], upper=[1.0, 5.0])
    square = (1, [0], np.eye(1), np.zeros(1), 0.0)
    found = scip_quadratic.solve_quadratic(mip, [square], Budget(10.0), 0, None)
    assert found is not None
    assert found.x[1] == pytest.approx(0.0, abs=1e-6)

    def give_up(model):
        raise EngineError("SCIP gave up")

    monkeypatch.setattr(scip_quadratic, "last_word", give_up)
    assert scip_quadratic.solve_quadratic(mip, [square], Budget(10.0), 0, None) is None


def test_an_engine_begins_anew_after_it(monkeypatch):
    mip = dt.Mip(cost=[1.0], lower=0.5, upper=3.0, integer=[True])
    session = scip.ScipEngine().load(mip, np.arange(1))
    cost = Quadratic.linear(mip.cost, mip.offset)

    def give_up(model):
        raise EngineError("SCIP gave up")

    with monkeypatch.context() as patched:
        patched.setattr(scip, "last_word", give_up)
        with pytest.raises(EngineError):
            session.solve(cost, budget=Budget(10.0))
    assert session.solve(cost, budget=Budget(10.0)).x == pytest.approx([1.0])
