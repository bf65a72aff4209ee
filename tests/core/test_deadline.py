"""Computations that take long leave when the solve around them should have ended, and only then."""

import threading

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.bounds.batch_lps import InteriorPoint
from dovetail.bounds.box import propagate
from dovetail.bounds.planes.domain import Boxes
from dovetail.branching.sign_search import SignSearch
from dovetail.core.deadline import GRACE, OutOfTime, deadline, require_time
from dovetail.networks.arithmetic import FLOAT32
from dovetail.networks.layers import Dense, program_of
from dovetail.reformulations.writer import Writer
from dovetail.run.budget import StopReason
from tests.bounds.lp_batch.test_linear_programs import programs
from tests.bounds.planes.test_slope_ascent import network
from tests.branching.closed_set_instance import Instance
from tests.small import knapsack


def test_it_counts_inside_only_and_after_a_grace():
    require_time()
    with deadline(lambda: GRACE):
        require_time()
        with deadline(lambda: 2.0 * GRACE), pytest.raises(OutOfTime):
            require_time()
        require_time()
    require_time()


def test_other_threads_have_no_deadline_of_ours():
    left = []

    def work():
        require_time()
        left.append("in time")

    with deadline(lambda: 2.0 * GRACE):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert left == ["in time"]


def _planes():
    box = torch.zeros(1, 3, dtype=torch.float64)
    network().ranges(Boxes(box - 1.0, box + 1.0))


def _box():
    propagate(dt.Mip([1.0], A=[[1.0]], row_lower=[0.5], row_upper=[2.0], lower=[0.0], upper=[9.0]))


def _rounding():
    program_of([Dense(np.eye(2), np.zeros(2))], 2).errors(FLOAT32, np.zeros((1, 2)), np.ones((1, 2)))


LONG = {
    "planes": _planes,
    "LPs": lambda: InteriorPoint(programs(4, 3, 0)).run(2),
    "signs": lambda: SignSearch(Instance(0, "box").targets()),
    "box": _box,
    "rounding": _rounding,
    "rows": lambda: Writer(0).row([0], np.ones(1), 0.0, 1.0),
}


@pytest.mark.parametrize("name", LONG)
def test_what_takes_long_asks_for_the_time(name):
    LONG[name]()
    with deadline(lambda: 2.0 * GRACE), pytest.raises(OutOfTime):
        LONG[name]()


class Computing:
    """Finds a point, is stopped, and goes on computing until it is made to leave."""

    name = "computing"

    def solve(self, context):
        context.incumbent.offer(np.array([1.0, 0.0, 0.0, 1.0, -5.0]), "computing")
        context.budget.stop(StopReason.CALLBACK)
        while True:
            _planes()


def test_a_solve_leaves_a_method_that_computes_on():
    result = dt.solve(knapsack(), Computing(), log=False)
    assert (result.stop_reason, result.objective) == ("callback", -4.0)
    require_time()
