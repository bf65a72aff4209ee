"""The same answer, wherever the shares are: here in one or five, in processes, with one of them killed."""

import os
import pickle
import signal
from contextlib import nullcontext

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.decomposition import TemplatePricing
from dovetail.decomposition.oracle import Oracle
from dovetail.decomposition.plan import template_plan
from dovetail.decomposition.shard import PricingOptions, usual_spread
from dovetail.decomposition.share import BlockSample, Range, make_share
from dovetail.decomposition.shares import ranges
from dovetail.solving import job
from tests.conftest import FULL
from tests.contexts import context_of
from tests.run.clusters import Pickled, Processes, SeveralHere
from tests.structure.test_templates import treated

from .families import blends, offers

PROBLEMS = {
    "classes": lambda: treated(120, budget=0.02),
    "numbers": lambda: offers(200, continuous=True),
    "whole": lambda: offers(120),
    "floor": lambda: blends(150),
}


@pytest.fixture
def on(monkeypatch):
    """Let solves be on a cluster."""

    def use(cluster):
        monkeypatch.setattr(job, "opened", lambda asked, workers: nullcontext(cluster))
        return cluster

    return use


def solved(problem, **options):
    result = dt.solve(problem, TemplatePricing(), log=False, time_limit=60.0, **options)
    assert result.x is not None
    assert dt.check(problem, result.x).within()
    return result


@pytest.mark.parametrize("family", PROBLEMS)
def test_five_shares_have_the_answer_of_one(family, on):
    """Left-over room is handed round, and the last few blocks are chosen over all shares."""
    alone = solved(PROBLEMS[family]())
    on(SeveralHere())
    apart = solved(PROBLEMS[family]())
    assert apart.objective == pytest.approx(alone.objective, rel=5e-3)  # descents begin at other chances


@pytest.mark.skipif(not FULL, reason="volume: five processes; run/test_processes.py kills one always")
def test_processes_have_the_answer_of_one_and_a_killed_one_costs_no_answer(on):
    problem = PROBLEMS["classes"]()
    alone = solved(problem)
    cluster = on(Processes())

    def kill(event):
        if event.row.iteration == 1:
            os.kill(cluster.hired.pids[1], signal.SIGKILL)

    apart = solved(problem, callback=kill)
    assert cluster.hired.losses == 1
    assert apart.objective == pytest.approx(alone.objective, rel=1e-2)  # other columns for half the blocks


def test_per_step_of_newton_s_method_some_numbers_per_pair_of_rows_travel(on):
    """Whatever the number of blocks: one sum, a number for each of R sides, and one for each pair."""
    per_step = []
    for n in (60, 240):
        cluster = on(Pickled())
        solved(treated(n, budget=0.02))
        per_step.append(cluster.hired.traffic.per_call("smoothed"))
    sides, workers = 3, 2
    assert per_step[0] == pytest.approx(per_step[1], rel=0.1)  # a few letters are without second derivatives
    assert per_step[1] < workers * (8 * (1 + 2 * sides + sides**2) + 1000)  # and what pickles say of arrays


def test_blocks_that_do_not_fit_the_memory_are_asked_in_smaller_parts(monkeypatch):
    alone, descend, asked = solved(PROBLEMS["classes"]()), Oracle.descend, []

    def short_of_memory(self, which, *arguments):
        asked.append(len(which))
        if len(which) > 100:
            raise torch.OutOfMemoryError
        return descend(self, which, *arguments)

    monkeypatch.setattr(Oracle, "descend", short_of_memory)
    assert solved(PROBLEMS["classes"]()).objective == pytest.approx(alone.objective, rel=1e-6)
    assert max(asked) > 100  # more was tried, and then no more
    assert max(asked[3:]) <= 240


def test_ranges_share_every_template_out():
    plan = template_plan(context_of(blends(60)))
    parts = ranges(plan, 7)
    assert len(parts) == 7
    seen = np.concatenate([np.arange(r.first, r.last) for mine in parts for r in mine])
    assert seen.tolist() == list(range(60))
    assert max(r.last - r.first for mine in parts for r in mine) <= 9
    assert len(ranges(plan, 100)) == 60  # nobody is hired for nothing


def test_a_sample_is_the_same_however_blocks_are_shared_out():
    sample = BlockSample(3, 0.2)
    whole = sample.within(Range(0, 0, 90, 90))
    assert len(whole) == sample.size(90) == 18
    parts = [sample.within(Range(0, first, first + 30, 90)) + first for first in (0, 30, 60)]
    assert sorted(np.concatenate(parts)) == sorted(whole)


def test_a_share_asked_in_the_middle_of_a_choice_begins_one():
    """It was lost and made again; whoever asks begins the choice again, but it must not fail."""
    problem = offers(60)
    program = template_plan(context_of(problem)).programs[0]
    where, blocks = Range(0, 0, 60, 60), list(problem.blocks)
    spread = usual_spread(program, blocks)
    share = make_share(program, where, blocks, PricingOptions(), "cpu", spread)
    use = share.put(np.arange(3), np.zeros(3, dtype=int))
    assert use.shape == (program.sides.count,)
    moves, _ = pickle.loads(pickle.dumps(share.chosen()))
    assert moves.shape == (60, program.coordinates)
