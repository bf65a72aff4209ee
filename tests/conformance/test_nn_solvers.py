"""Our sub-solvers pass the public suite, in all their settings."""

import pytest

import dovetail as dt
from dovetail.nn import SUB_SOLVERS
from dovetail.testing import SubSolverSuite
from tests.conftest import volume


class TestAdam(SubSolverSuite):
    solver = dt.ProjectedGradient()
    accurate = dt.ProjectedGradient(steps=300, lr=0.05)


@volume("settings of projected gradient")
class TestPaper(SubSolverSuite):
    solver = dt.ProjectedGradient.paper()
    accurate = dt.ProjectedGradient(steps=300, lr=0.05)  # the paper's own 25 steps end too early


@volume("settings of projected gradient")
class TestGradient(SubSolverSuite):
    solver = dt.ProjectedGradient(rule="gradient", lr=0.005)
    accurate = dt.ProjectedGradient(steps=300, lr=0.02, rule="gradient", decay=False)


class TestNewtonCg(SubSolverSuite):
    solver = dt.LogBarrier()
    accurate = dt.LogBarrier(newton_steps=15, smallest_mu=1e-9)


@volume("a variant of the barrier")
class TestLBfgsB(SubSolverSuite):
    solver = dt.LogBarrier(variant="l-bfgs-b")
    accurate = dt.LogBarrier(newton_steps=15, smallest_mu=1e-9, variant="l-bfgs-b")
    separates_samples = False  # one run over all samples together: its step lengths are shared


def test_every_sub_solver_of_the_table_is_tested():
    tested = {type(suite.solver).__name__ for suite in SubSolverSuite.__subclasses__()}
    assert tested >= set(SUB_SOLVERS)


@pytest.mark.parametrize(
    ("make", "culprit"),
    [
        (lambda: dt.ProjectedGradient(steps=0), "steps is 0"),
        (lambda: dt.ProjectedGradient(lr=-1.0), "lr is -1"),
        (lambda: dt.ProjectedGradient(lr=float("nan")), "lr is nan"),
        (lambda: dt.ProjectedGradient(rule="lion"), "lion"),
        (lambda: dt.LogBarrier(variant="bfgs"), "bfgs"),
        (lambda: dt.LogBarrier(mu=0.0), "mu is 0.0"),
        (lambda: dt.LogBarrier(mu=float("inf")), "mu is inf"),
        (lambda: dt.LogBarrier(newton_steps=1.5), "newton_steps is 1.5"),
        (lambda: dt.ProjectedGradient(lr="0.1"), "lr is '0.1'"),
        (lambda: dt.LogBarrier(shrink=1.5), "shrink is 1.5"),
        (lambda: dt.LogBarrier(cg_steps=0), "cg_steps"),
    ],
)
def test_options_are_checked(make, culprit):
    with pytest.raises(dt.OptionError, match=culprit):
        make()
