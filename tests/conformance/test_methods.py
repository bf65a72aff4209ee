"""Our methods pass the public suite."""

from dataclasses import replace

import pytest

import dovetail as dt
from dovetail.methods import METHODS
from dovetail.testing import MethodSuite
from dovetail.testing.problems import bowl
from tests.conftest import FULL, volume

NAMES = tuple(METHODS)
"""Ours: other tests register some of their own later."""


def brief(name):
    """The method with less patience."""
    method = METHODS.make(name)
    if FULL or name in ("big-m", "single-step-gradient"):
        return method
    if isinstance(method, dt.DualDecomposition):
        return replace(method, iterations=12)
    if isinstance(method, dt.Auto):
        return replace(method, patience=4, effort=1)  # each of its phases has its turn all the same
    return replace(method, patience=4)


def endless(name):
    """The method with options under which it ends only when it is told to."""
    if name == "big-m":
        return METHODS.make(name)  # sixty samples keep SCIP busy for longer than anybody waits
    if name in ("auto", "sequential-linear", "neighbourhood", "integer-search"):
        return replace(METHODS.make(name), patience=1_000_000)
    method = replace(METHODS.make(name), iterations=1_000_000)
    if isinstance(method, dt.DualDecomposition):
        noisy = dt.ProjectedGradient.paper()  # its copies never settle
        method = replace(method, nn_solver=noisy, patience=None, tolerance=1e-300)
    return method


def settings(name):
    return METHODS.make(name), brief(name), endless(name)


class TestAuto(MethodSuite):
    _, brief, _ = settings("auto")
    method = dt.Auto(block_prices=False)  # they prove the samples of the suite in three rows of the trace
    endless = dt.Auto(block_prices=False, exact=False)


class TestDualDecomposition(MethodSuite):
    method, brief, endless = settings("dual-decomposition")


@volume("settings of dual decomposition")
class TestPaper(MethodSuite):
    method, brief, endless = settings("paper")


@volume("settings of dual decomposition")
class TestPaperAdaptive(MethodSuite):
    method, brief, endless = settings("paper-adaptive")
    meets_easy_bounds = False  # a rho that only grows holds x where it is before it has crossed that box


@volume("the baseline of the study, whose own tests it has: tests/study/big_m")
class TestBigM(MethodSuite):
    method, brief, endless = settings("big-m")
    takes_any_predictor = False

    def test_the_layer_that_cannot_be_written_out_is_named(self):
        with pytest.raises(dt.UnsupportedError, match="layer Parabola cannot be written out"):
            dt.solve(bowl(), self.method, log=False)


@volume("what a solve promises is seen with other methods")
class TestSequentialLinear(MethodSuite):
    method, brief, endless = settings("sequential-linear")


@volume("what a solve promises is seen with other methods")
class TestIntegerSearch(MethodSuite):
    method, brief, endless = settings("integer-search")
    meets_easy_bounds = False  # there is no integer to move in that problem


@volume("what a solve promises is seen with other methods")
class TestNeighbourhood(MethodSuite):
    method, brief, endless = settings("neighbourhood")


@volume("what a solve promises is seen with other methods")
class TestSingleStepGradient(MethodSuite):
    method, brief, endless = settings("single-step-gradient")
    meets_easy_bounds = False  # a hundred short steps do not cross that box


def test_every_method_of_the_table_is_tested():
    tested = [suite.method for suite in MethodSuite.__subclasses__()]
    tested.append(replace(TestAuto.method, block_prices=True))
    assert all(METHODS.make(name) in tested for name in NAMES)
