"""What happens where SCIP gives up a run, and where a limit of nodes ends one."""

from types import SimpleNamespace

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.errors import EngineError
from dovetail.mip import scip
from dovetail.mip.scip import final_status
from dovetail.run.budget import Budget
from dovetail.run.engine import Quadratic
from tests.conftest import sample


class GivesUp:
    """A model as PySCIPOpt's, whose run ends in an error."""

    def __init__(self, reason):
        self._reason = reason
        self.rests = SimpleNamespace(task=None)

    def getStage(self):
        return 1

    def optimizeNogil(self):
        raise self._reason


def test_a_run_that_it_gives_up_has_no_answer():
    with pytest.raises(EngineError, match="SCIP gave up .*LP solver"):
        final_status(GivesUp(Exception("SCIP: error in LP solver!")))


@pytest.mark.parametrize("reason", [MemoryError(), KeyError("of somebody else")])
def test_other_errors_are_told(reason):
    with pytest.raises(type(reason)):
        final_status(GivesUp(reason))


def test_a_quadratic_program_that_it_gives_up_came_to_nothing(monkeypatch):
    mip = dt.Mip(cost=[0.0, 1.0], lower=[-1.0, -5.0], upper=[1.0, 5.0])
    square = (1, [0], np.eye(1), np.zeros(1), 0.0)
    found = scip.solve_quadratic(mip, [square], Budget(10.0), 0, None)
    assert found is not None
    assert found.x[1] == pytest.approx(0.0, abs=1e-6)

    def give_up(model):
        raise EngineError("SCIP gave up")

    monkeypatch.setattr(scip, "final_status", give_up)
    assert scip.solve_quadratic(mip, [square], Budget(10.0), 0, None) is None


def test_an_engine_begins_anew_after_it(monkeypatch):
    mip = dt.Mip(cost=[1.0], lower=0.5, upper=3.0, integer=[True])
    session = scip.ScipEngine().load(mip, np.arange(1))
    cost = Quadratic.linear(mip.cost, mip.offset)

    def give_up(model):
        raise EngineError("SCIP gave up")

    with monkeypatch.context() as patched:
        patched.setattr(scip, "final_status", give_up)
        with pytest.raises(EngineError):
            session.solve(cost, budget=Budget(10.0))
    assert session.solve(cost, budget=Budget(10.0)).x == pytest.approx([1.0])


def knapsacks(seed, n=40, m=25):
    """Several knapsacks over the same items: hundreds of nodes."""
    rng = np.random.default_rng(seed)
    A = rng.integers(1, 30, (m, n)).astype(float)
    cost = -rng.integers(5, 40, n) - rng.random(n)
    return dt.Mip(cost, A, np.full(m, -np.inf), 0.35 * A.sum(1), 0.0, 1.0, np.ones(n, dtype=bool))


@pytest.mark.parametrize("seed", sample(range(3)))
def test_the_same_question_goes_on_where_a_limit_of_nodes_ended_it(seed):
    mip = knapsacks(seed)
    cost, nothing = Quadratic.linear(mip.cost, mip.offset), np.empty(0, dtype=np.int64)
    at_once = scip.ScipEngine().load(mip, nothing).solve(cost, budget=Budget(60.0))
    session, turns, last, bounds = scip.ScipEngine().load(mip, nothing), 0, None, []
    while last is None or not last.exact:
        known = None if last is None else last.x
        last = session.solve(cost, budget=Budget(60.0, nodes=10), start=known)
        bounds.append(last.bound)
        turns += 1
    assert turns > 1
    assert last.value == pytest.approx(at_once.value)
    assert bounds == sorted(bounds)


def test_another_question_begins_anew():
    mip, nothing = knapsacks(0), np.empty(0, dtype=np.int64)
    session = scip.ScipEngine().load(mip, nothing)
    session.solve(Quadratic.linear(mip.cost, mip.offset), budget=Budget(60.0, nodes=5))
    other = session.solve(Quadratic.linear(-mip.cost, mip.offset), budget=Budget(60.0))
    assert other.value == pytest.approx(0.0)
