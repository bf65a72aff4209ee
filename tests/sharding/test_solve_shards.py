"""Blocks in shards: the answer of the whole, checked where it is, and errors that name the shard.

Rows over all shards: what data use of them in each is taken off once.
"""

import io
import os
import signal
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.check import Violation, Worst
from dovetail.decomposition import TemplatePricing, rounds
from dovetail.decomposition.shard import PricingOptions
from dovetail.sharding import solve_shards as module
from dovetail.sharding.solve_shards import Agreement, OwnShare, ShardAnswer, ShardSource
from dovetail.testing.problems import linear_net, offers_of, random_mlp
from tests.conftest import FULL
from tests.run.clusters import Pickled, Processes

COUNT = 3


def rows_of(number):
    """As `offers_of` draws them."""
    return np.random.default_rng(number).uniform(-1.0, 1.0, (60, 2))


@pytest.fixture(scope="module")
def whole():
    """All blocks in one problem."""
    problem = offers_of(np.concatenate([rows_of(number) for number in range(COUNT)]))
    return dt.solve(problem, TemplatePricing(), time_limit=60, log=False).objective


def values_hold(result):
    """The files against the network itself and the budget."""
    objective, spent = 0.0, 0.0
    for number in range(len(result.files)):
        values = result.values(number)
        problem = offers_of(values["about"])
        x = np.concatenate([values[name].ravel() for name in ("offer", "about", "buys")])
        assert dt.check(problem, x).within()
        objective, spent = objective + values["buys"].sum(), spent + values["offer"].sum()
    assert objective == pytest.approx(result.objective)
    assert spent == pytest.approx(result.activity["budget"])
    assert spent <= 20.0 + 1e-6


def test_by_number_the_answer_is_that_of_the_whole(tmp_path, whole):
    log = io.StringIO()
    result = dt.solve_shards(
        offers_of, range(COUNT), out=tmp_path / "new" / "folder", time_limit=None, log=log
    )
    assert result.objective == pytest.approx(whole, rel=5e-3)
    assert result.objective <= result.limit + 1e-6 * abs(result.limit)
    assert result.violation.within()
    assert result.blocks == 60 * COUNT
    values_hold(result)
    assert "checked by every shard's own predictor" in log.getvalue()
    assert "objective" in repr(result)


REAL = pytest.param(
    Processes, marks=pytest.mark.skipif(not FULL, reason="volume: three processes that import torch")
)


@pytest.mark.parametrize("cluster", [Pickled, REAL])
def test_files_in_other_processes_and_one_that_is_lost(cluster, tmp_path, whole, monkeypatch):
    """Arrays stay on the disk; a process that is killed is replaced, its shards are read again."""
    there = cluster()
    monkeypatch.setattr(module, "opened", lambda asked, workers: nullcontext(there))
    monkeypatch.setattr(rounds, "FEWEST_SAMPLED", COUNT)  # prices by Newton's method, as with many blocks
    files = [tmp_path / f"part{number}.npy" for number in range(COUNT)]
    for number, file in enumerate(files):
        np.save(file, rows_of(number))
    if cluster is Processes:
        tell = module.Monitor.say

        def kill(monitor, line):
            tell(monitor, line)
            if "round 1:" in line:
                os.kill(there.hired.pids[0], signal.SIGKILL)

        monkeypatch.setattr(module.Monitor, "say", kill)
    result = dt.solve_shards(offers_of, files, out=tmp_path / "answers", n_jobs=2, log=False)
    assert result.losses == (1 if cluster is Processes else 0)
    assert result.objective == pytest.approx(whole, rel=1e-2)
    assert 0 < result.step_bytes < 4000
    values_hold(result)


def test_ctrl_c_ends_the_search_and_its_answer_holds(tmp_path):
    """While the second shard is stated: one round is made over all blocks, and chosen from."""

    def build(number):
        if number == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return offers_of(number)

    result = dt.solve_shards(build, range(COUNT), out=tmp_path, log=False)
    assert (result.stop_reason, result.rounds) == ("interrupt", 1)
    values_hold(result)
    again = dt.solve_shards(offers_of, range(COUNT), out=tmp_path, log=False)
    assert again.stop_reason == "stalled"
    assert again.objective >= result.objective


def test_a_second_ctrl_c_leaves_at_once(tmp_path):
    def build(number):
        os.kill(os.getpid(), signal.SIGINT)
        return offers_of(number)

    with pytest.raises(KeyboardInterrupt):
        dt.solve_shards(build, range(COUNT), out=tmp_path, log=False)
    assert not list(tmp_path.iterdir())


def shifted(number):
    """The second shard has another limit for all."""
    problem = dt.Problem(sense="max")
    made = problem.add_template(
        60,
        {"offer": dt.Family(upper=1.0), "buys": dt.Family(lower=-np.inf, cost=1.0)},
        coupling=[dt.FamilyRow({"offer": 1.0}, upper=20.0 + number, name="budget")],
    )
    problem.add_predictor(linear_net([[1.0]]), made["offer"], made["buys"])
    return problem


def wider(rows):
    """As many inputs as the file has columns."""
    problem = dt.Problem(sense="max")
    made = problem.add_template(
        len(rows),
        {"about": dt.Family(fixed=rows), "offer": dt.Family(upper=1.0), "buys": dt.Family(lower=-np.inf)},
        coupling=[dt.FamilyRow({"offer": 1.0}, upper=20.0, name="budget")],
    )
    net = linear_net(np.ones((1, rows.shape[1] + 1)))
    problem.add_predictor(net, made["about", "offer"], made["buys"])
    return problem


def no_problem(number):
    return number


def test_errors_name_the_shard_before_anything_is_solved(tmp_path):
    whole, cut, empty, wide = (tmp_path / f"{name}.npy" for name in ("whole", "cut", "empty", "wide"))
    np.save(whole, rows_of(0))
    cut.write_bytes(whole.read_bytes()[:-100])
    empty.touch()
    np.save(wide, np.ones((60, 3)))
    cases = [
        (offers_of, [whole, tmp_path / "gone.npy"], r"shard 1 \(.*gone.npy\): the file cannot be read"),
        (offers_of, [whole, cut], r"shard 1 \(.*cut.npy\): the file cannot be read"),
        (offers_of, [whole, empty], r"empty.npy\): the file cannot be read \(it is empty\)"),
        (wider, [whole, wide], r"shard 1 \(.*wide.npy\): its families is 'about \(3\)"),
        (shifted, [0, 1], r"shard 1: its upper of row budget, .* is 21.0, and that of shard 0 is 20.0"),
        (no_problem, range(2), "shard 0: build returned int"),
    ]
    for build, shards, message in cases:
        with pytest.raises(dt.ModelError, match=message):
            dt.solve_shards(build, shards, out=tmp_path / "out", log=False)
    assert not list((tmp_path / "out").iterdir())


def test_bad_options(tmp_path):
    for shards in ("part.npy", [], 3, [1.5]):
        with pytest.raises(dt.OptionError, match="shards"):
            dt.solve_shards(offers_of, shards, out=tmp_path, log=False)
    with pytest.raises(dt.OptionError, match="build is 3"):
        dt.solve_shards(3, range(2), out=tmp_path, log=False)
    with pytest.raises(dt.OptionError, match="cannot be sent to other processes"):
        dt.solve_shards(lambda number: offers_of(number), range(2), out=tmp_path, n_jobs=2, log=False)


SPENT = [np.linspace(0.0, 0.1, 60), np.linspace(0.0, 0.3, 50)]


def with_data(number):
    """What is spent already counts; at least 10 have to be."""
    spent = SPENT[number]
    problem = dt.Problem(sense="min")
    made = problem.add_template(
        len(spent),
        {
            "spent": dt.Family(fixed=spent),
            "offer": dt.Family(upper=1.0),
            "out": dt.Family(lower=-np.inf, cost=1),
        },
        coupling=[
            dt.FamilyRow({"offer": 1.0, "spent": 2.0}, lower=10.0, upper=40.0, name="budget"),
            dt.FamilyRow({"offer": -1.0}, lower=-50.0, name="floor"),
        ],
    )
    problem.add_predictor(random_mlp(2, seed=1), made["spent", "offer"], made["out"])
    return problem


@pytest.fixture(scope="module")
def agreed():
    shares = [OwnShare(ShardSource.of(with_data, k, k), PricingOptions(), "cpu") for k in range(2)]
    return Agreement.of([share.facts() for share in shares])


def test_sides_are_those_of_the_whole_less_what_all_data_use(agreed):
    used = 2.0 * sum(spent.sum() for spent in SPENT)
    assert agreed.totals == [60, 50]
    assert agreed.sign == 1.0
    np.testing.assert_allclose(agreed.sides.limit, [40.0 - used, -10.0 + used, 50.0])


def test_the_worst_of_all_shards_and_of_the_rows_over_them(agreed):
    said = partial(ShardAnswer, 1.0)
    fine, bad = Violation(), Violation(prediction=Worst(0.5, "block0, sample 3, output 0"))
    within = [said(np.array([15.0, -15.0]), fine), said(np.array([20.0, -20.0]), fine)]
    assert agreed.violation(within).within()
    assert agreed.activity(within) == {"budget": 35.0, "floor": -35.0}
    beyond = [said(np.array([15.0, -15.0]), fine), said(np.array([26.0, -20.0]), fine)]
    assert agreed.violation(beyond).missed == "constraint budget by 1.0e+00"
    assert agreed.violation([within[0], said(np.array([20.0, -20.0]), bad)]).missed.startswith(
        "the prediction of shard 1: block0"
    )


def test_a_lower_limit_is_met_by_all_shards_together(tmp_path):
    result = dt.solve_shards(with_data, range(2), out=tmp_path, log=False)
    assert result.violation.within()
    assert 10.0 - 1e-6 <= result.activity["budget"] <= 40.0 + 1e-6
    assert result.activity["floor"] >= -50.0 - 1e-6
