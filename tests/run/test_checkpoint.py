"""Checkpoints: what is written, read again, refused; a killed solve that goes on."""

import io
import json
import os
import random
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.certificates.fingerprint import covers_all, fingerprint
from dovetail.modelling.snapshot import take_snapshot
from dovetail.run import checkpoint as checkpoints
from dovetail.run.checkpoint import CheckpointFile, read_checkpoint
from dovetail.run.monitor import Ticker
from tests.conftest import FULL
from tests.small import bowl

KILLED = 50 if FULL else 2
"""Number of solves that are killed at a random moment."""


def problem(seed=0, cost=0.1):
    """A network of six inputs that two seconds do not close."""
    torch.manual_seed(seed)
    net = torch.nn.Sequential(
        torch.nn.Linear(6, 32), torch.nn.ReLU(), torch.nn.Linear(32, 32), torch.nn.ReLU(),
        torch.nn.Linear(32, 1),
    ).double()  # fmt: skip
    mip = dt.Mip(
        [cost] * 6 + [1.0], A=[[1.0] * 6 + [0.0]], row_lower=[0.5], row_upper=[3.0],
        lower=[-2.0] * 6 + [-np.inf], upper=[2.0] * 6 + [np.inf],
    )  # fmt: skip
    stated = dt.Problem(mip)
    stated.add_predictor(net, range(6), [6])
    return stated


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """A checkpoint of a solve that ended at its time limit, and its result."""
    file = tmp_path_factory.mktemp("checkpoint") / "run.dove"
    return file, dt.solve(problem(), time_limit=3.0, checkpoint=file, log=False)


def test_solution_bound_and_time_count_on(interrupted):
    file, first = interrupted
    again = dt.resume(file, problem(), time_limit=0.5, checkpoint=None, log=False)
    assert first.seconds <= again.seconds <= first.seconds + 3.0
    assert again.objective <= first.objective
    if first.bound is not None:  # a busy machine may have none yet
        assert again.bound >= first.bound and again.bound_kind == "proven" and again.bound_source
    before = first.trace.incumbents[:-1]  # the last one is found again at once
    assert again.trace.incumbents[: len(before)] == before
    assert dt.check(problem(), again.x).within()


def test_the_rest_of_the_time_is_given(interrupted):
    file, _ = interrupted
    with pytest.raises(dt.OptionError, match=r"time limit of 3 s is over.*give time_limit="):
        dt.resume(file, problem(), log=False)


def test_a_solve_that_was_closed_is_closed_at_once(tmp_path):
    file = tmp_path / "run.dove"
    mip = dt.Mip([1.0, -1.0], upper=[3.0, 9.0], integer=[True, False])
    squares = dt.Problem(mip)
    squares.add_predictor(dt.Square(), [0], [1])
    assert dt.solve(squares, checkpoint=file, log=False).status == "optimal"
    again = dt.resume(file, squares, log=False)
    assert (again.status, again.objective) == ("optimal", -6.0)
    assert again.work.nodes <= 1  # of the MIP without predictors


@pytest.mark.parametrize("other", [problem(seed=1), problem(cost=0.2), bowl()], ids=["net", "cost", "size"])
def test_another_problem_is_refused(interrupted, other):
    with pytest.raises(dt.OptionError, match="the checkpoint is of another problem"):
        dt.resume(interrupted[0], other, time_limit=1.0, log=False)


def test_a_start_from_the_file_has_its_solution_only(interrupted):
    again = dt.solve(problem(), start=interrupted[0], time_limit=0.0, log=False)
    assert (again.objective, again.source) == (interrupted[1].objective, "start")
    assert again.seconds < 1.0 and again.bound_source != "nodes"


def with_header(file, place, **changes):
    """A copy of a checkpoint with another header."""
    with zipfile.ZipFile(file) as given, zipfile.ZipFile(place, "w") as made:
        for name in given.namelist():
            content = given.read(name)
            if name == checkpoints.HEADER:
                content = json.dumps(json.loads(content) | changes)
            made.writestr(name, content)
    return place


def test_a_bound_of_another_version_is_not_believed(interrupted, tmp_path):
    file = with_header(interrupted[0], tmp_path / "old.dove", version="0.0.1")
    again = dt.resume(file, problem(), time_limit=0.0, log=False)
    assert again.objective == interrupted[1].objective and again.bound is None


def test_a_bound_is_believed_only_if_the_fingerprint_covers_the_predictors(tmp_path):
    """Two Python functions have the same fingerprint, whatever they compute."""
    file = tmp_path / "run.dove"

    def stated(function):
        whole = dt.Problem(dt.Mip([0.0, 1.0], upper=[5.0, 99.0], integer=[True, False]))
        whole.add_predictor(function, [0], [1])
        return whole

    first = dt.solve(stated(lambda X: 9.0 - X), checkpoint=file, log=False)
    assert (first.status, first.bound) == ("optimal", pytest.approx(4.0))
    assert not covers_all(stated(np.negative)) and read_checkpoint(file).bound is None
    again = dt.resume(file, stated(lambda X: 1.0 + X), log=False)
    assert (again.status, again.objective) == ("optimal", pytest.approx(1.0))


def test_trees_and_templates_are_in_the_fingerprint():
    from sklearn.tree import DecisionTreeRegressor

    X, net = np.linspace(0.0, 1.0, 20)[:, None], torch.nn.Linear(1, 1).double()

    def of_trees(y):
        tree = DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, y)
        stated = dt.Problem(dt.Mip([0.0, 1.0], upper=[1.0, 9.0]))
        stated.add_predictor(tree, [0], [1])
        return stated

    def of_families(cost):
        stated = dt.Problem(sense="min")
        shops = stated.add_template(3, {"x": dt.Family(upper=1.0), "y": dt.Family(cost=cost)})
        stated.add_predictor(net, shops["x"], shops["y"])
        return stated

    for make, one, other in ((of_trees, X[:, 0], X[::-1, 0]), (of_families, 1.0, 2.0)):
        problems = [take_snapshot(make(given)).problem for given in (one, one, other)]
        assert all(map(covers_all, problems))
        marks = [fingerprint(each) for each in problems]
        assert marks[0] == marks[1] != marks[2]
    assert problems[0].stated.waiting and "mip" not in vars(problems[0].stated)  # not written out


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9, 0.999])
def test_a_damaged_file_is_refused(interrupted, tmp_path, part):
    content = interrupted[0].read_bytes()
    short = tmp_path / "short.dove"
    short.write_bytes(content[: int(part * len(content))])
    with pytest.raises(dt.OptionError, match="is not a checkpoint, or it is damaged"):
        dt.resume(short, problem(), log=False)
    turned = bytearray(content)
    turned[int(part * 0.9 * len(content)) + 40] ^= 255
    short.write_bytes(bytes(turned))
    with pytest.raises(dt.OptionError):
        dt.resume(short, problem(), log=False)


def test_files_that_run_code_are_not_read(interrupted, tmp_path):
    class Runs:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    place = tmp_path / "bad.dove"
    with zipfile.ZipFile(interrupted[0]) as given, zipfile.ZipFile(place, "w") as made:
        made.writestr(checkpoints.HEADER, given.read(checkpoints.HEADER))
        content = io.BytesIO()
        np.save(content, np.array([Runs()], dtype=object), allow_pickle=True)
        made.writestr("x.npy", content.getvalue())
    with pytest.raises(dt.OptionError, match="damaged"):
        read_checkpoint(place)
    assert not (tmp_path / "ran").exists()


def test_multipliers_are_kept(tmp_path):
    file = tmp_path / "run.dove"
    method = dt.DualDecomposition(iterations=4)
    first = dt.solve(bowl(), method, checkpoint=file, log=False)
    known = read_checkpoint(file)
    assert known.multipliers.rho == first.multipliers.rho
    for name, values in first.multipliers.inputs.items():
        assert np.array_equal(known.multipliers.inputs[name], values)
    with pytest.raises(dt.OptionError, match="method object"):
        dt.resume(file, bowl(), log=False)
    assert dt.resume(file, bowl(), method=method, log=False).iterations == 4


def test_solutions_that_are_found_early_are_kept(tmp_path):
    file = tmp_path / "run.dove"
    many = dt.Problem(
        dt.Mip(
            [-3.0, -2.0, -2.0, 0.0], [[2.0, 1.0, 1.0, 0.0]], [-np.inf], [3.0], upper=2.0, integer=[1, 1, 1, 0]
        )
    )
    many.add_predictor(dt.Square(), [0], [3])
    first = dt.solve(many, checkpoint=file, solutions=3, log=False)
    known = read_checkpoint(file)
    assert any(np.array_equal(x, first.x) for x in known.archive)
    again = dt.resume(file, many, time_limit=60, log=False)
    assert [s.objective for s in again.solutions] == [s.objective for s in first.solutions]


def test_the_first_files_come_soon():
    calls, pauses = [], []
    ticker = Ticker(lambda: calls.append(1), 60.0, first=1.0)
    ticker._end.wait = lambda pause: pauses.append(pause) or len(pauses) > 8
    ticker._run()
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0] and len(calls) == 8


def test_a_file_that_cannot_be_written_does_not_end_the_solve(tmp_path, monkeypatch):
    def full(path, content):
        raise dt.OptionError(f"{path} cannot be written: No space left on device.")

    monkeypatch.setattr(checkpoints, "write_file", full)
    log = io.StringIO()
    file = CheckpointFile(tmp_path / "run.dove", seconds=0.1)
    result = dt.solve(problem(), time_limit=1.0, checkpoint=file, log=log)
    assert result.status == "feasible" and not result.failures
    assert " ".join(log.getvalue().split()).count("No space left on device") == 1


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
import dovetail as dt
from dovetail.run.checkpoint import CheckpointFile
from tests.run.test_checkpoint import problem
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))  # no file can be longer
file = CheckpointFile(Path(sys.argv[1]), seconds=0.1)
print(dt.solve(problem(), time_limit=1.0, checkpoint=file).status)
"""


def test_a_full_disk_leaves_the_last_checkpoint(interrupted, tmp_path):
    file = tmp_path / "run.dove"
    content = interrupted[0].read_bytes()
    file.write_bytes(content)
    ran = subprocess.run([sys.executable, "-c", FULL_DISK, str(file)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == "feasible"
    assert " ".join(ran.stdout.split()).count("cannot be written") == 1
    assert file.read_bytes() == content and [*tmp_path.iterdir()] == [file]


def test_other_files_are_not_overwritten(tmp_path):
    plan = tmp_path / "plan.mps"
    plan.write_text("NAME plan\n")
    with pytest.raises(dt.OptionError, match="is no checkpoint and would be overwritten"):
        dt.solve(bowl(), checkpoint=plan, log=False)
    with pytest.raises(dt.OptionError, match="there is no such folder"):
        dt.solve(bowl(), checkpoint=tmp_path / "none" / "run.dove", log=False)
    with pytest.raises(dt.OptionError, match="checkpoint is 7"):
        dt.solve(bowl(), checkpoint=7, log=False)


def test_unknown_options_are_named(interrupted):
    with pytest.raises(TypeError, match="time_limits"):
        dt.resume(interrupted[0], problem(), time_limits=3.0)


CHILD = """
import sys
from pathlib import Path
import dovetail as dt
from dovetail.run.checkpoint import CheckpointFile
from tests.run.test_checkpoint import problem
print("begins", flush=True)
dt.solve(problem(), time_limit=60, checkpoint=CheckpointFile(Path(sys.argv[1]), seconds=0.05), log=False)
"""


@pytest.mark.parametrize("seed", range(KILLED))
def test_a_killed_solve_goes_on(tmp_path, seed):
    """The file is complete at any moment; the bound and the solution of the resumed solve are not worse."""
    file = tmp_path / "run.dove"
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(file)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "begins\n"
        until = time.monotonic() + 120.0
        while not file.exists() and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(random.Random(seed).uniform(0.0, 1.5))
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    known = read_checkpoint(file)
    again = dt.resume(file, problem(), time_limit=0.3, log=False)
    assert again.seconds >= known.seconds
    if known.x is not None:
        assert again.objective <= known.objective + 1e-9
    if known.bound is not None:
        assert again.bound >= min(known.bound.value, again.objective) - 1e-9
    assert again.bound is None or again.bound <= BEST + 1e-6


BEST = -0.1278
"""No better solution of the problem is known after minutes."""
