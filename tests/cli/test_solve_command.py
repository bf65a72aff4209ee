"""`dovetail solve` from files to files: what is written, what is said, how it ends."""

import contextlib
import errno
import io
import json
import os
import pickle
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import dovetail as dt
from dovetail.cli import main
from dovetail.cli.exit_code import exit_code
from tests.cli.commands import dovetail, refused
from tests.cli.plan_files import write_plan
from tests.processes import surviving
from tests.small import bowl


class Failing:
    """A predictor that gives up after some calls."""

    def __init__(self, calls):
        self.calls = calls

    def __call__(self, X):
        self.calls -= 1
        if self.calls < 0:
            raise RuntimeError("no more\nanswers")
        return X[:, :1] ** 2


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """The example, solved."""
    folder = tmp_path_factory.mktemp("solved")
    assert dovetail("init", folder).code == 0
    return folder, dovetail("solve", folder / "problem.toml")


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    write_plan(folder)
    return folder


@pytest.fixture
def endless(tmp_path):
    """A problem that is not proved in any time there is."""
    names = [f"x{k}" for k in range(8)]
    (tmp_path / "m.lp").write_text(
        f"minimize\n o: y\nsubject to\n r: {' + '.join(names)} <= 3\nbounds\n y free\nend\n"
    )
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
    torch.save(net.state_dict(), tmp_path / "n.pt")
    (tmp_path / "p.toml").write_text(
        'model = "m.lp"\n[[predictor]]\nfile = "n.pt"\nactivation = "tanh"\ninputs = "x*"\noutputs = "y"\n'
        '[solve]\ntime_limit = 60\n[output]\nsolution = "s.json"\n'
    )
    return tmp_path


def at_plan(plan):
    return [plan / "plan.mps", "--predictor", f"{plan / 'strength.onnx'}:cement,ash->strength"]


def test_the_example_is_solved_and_written(solved):
    folder, ran = solved
    assert ran.code == 0, ran
    result = dt.Result.from_json((folder / "result.json").read_text())
    assert result.status is dt.Status.OPTIMAL
    assert result.value("trucks") == 7.0
    assert "<svg" in (folder / "result.html").read_text()
    assert "  trucks          7\n" in ran.out
    assert f"solution    {folder / 'result.json'}\n" in ran.out
    assert not [path for path in folder.iterdir() if path.name.startswith(".dovetail-")]


def test_a_model_file_and_a_predictor(plan, tmp_path):
    ran = dovetail(
        "solve", *at_plan(plan), "--solution", tmp_path / "s.json", "--report", tmp_path / "r.html", "-q"
    )
    assert ran.code == 0, ran
    assert ran.out.startswith("optimal, objective ")
    result = dt.Result.from_json((tmp_path / "s.json").read_text())
    assert result.objective == pytest.approx(6.0, abs=1e-5)  # ash costs half as much, and gives a quarter
    assert result.value(["cement", "ash", "strength"]) == pytest.approx([3.0, 0.0, 3.0], abs=1e-5)
    assert (tmp_path / "r.html").exists()


def test_options_of_the_command_line_come_first(solved, monkeypatch):
    folder, _ = solved
    seen = {}

    def solve(problem, **options):
        seen.update(options)
        return dt.Result.from_json((folder / "result.json").read_text())

    monkeypatch.setattr(dt, "solve", solve)
    given = ["--time-limit", "3", "--method", "paper", "--jobs", "2", "--target", "-1", "--log-file", "log"]
    assert dovetail("solve", folder / "problem.toml", *given).code == 0
    assert (seen["time_limit"], seen["method"], seen["n_jobs"], seen["seed"]) == (3.0, "paper", 2, 0)
    assert (seen["target"], seen["log_file"]) == (-1.0, Path("log"))


@pytest.mark.parametrize(
    ("status", "reason", "code"),
    [
        ("optimal", "proved", 0), ("feasible", "time", 0), ("feasible", "interrupt", 130),
        ("no_solution", "time", 1), ("no_solution", "interrupt", 130), ("infeasible", "proved", 3),
        ("unbounded", "proved", 4), ("error", "error", 5),
    ],
)  # fmt: skip
def test_exit_codes_say_the_status(solved, status, reason, code):
    result = dt.Result.from_json((solved[0] / "result.json").read_text())
    assert exit_code(replace(result, status=dt.Status(status), stop_reason=dt.StopReason(reason))) == code


def test_an_infeasible_problem_ends_with_3_and_is_written(plan, tmp_path):
    text = (plan / "plan.mps").read_text().replace("need 6", "need 99")
    (tmp_path / "plan.mps").write_text(text.replace(" FR b strength", " UP b strength 9"))
    command = [tmp_path / "plan.mps", *at_plan(plan)[1:], "--solution", tmp_path / "s.json"]
    assert dovetail("solve", *command, "-q").code == 3
    assert dt.Result.from_json((tmp_path / "s.json").read_text()).status is dt.Status.INFEASIBLE


def test_a_start_is_a_file(solved, plan, tmp_path, monkeypatch):
    folder, _ = solved
    seen = []

    def solve(problem, *, start, **options):
        seen.append(start)
        return dt.Result.from_json((folder / "result.json").read_text())

    monkeypatch.setattr(dt, "solve", solve)
    problem = shutil.copytree(folder, tmp_path / "again")
    (problem / "result.json").rename(problem / "start.json")
    assert dovetail("solve", problem / "problem.toml", "--start", problem / "start.json").code == 0
    assert isinstance(seen[-1], dt.Result)
    monkeypatch.undo()
    said = refused("solve", *at_plan(plan), "--start", problem / "start.json")
    assert "no names are the same" in said


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_still_writes_the_result(endless, number, code, monkeypatch):
    """Sent at the first point."""
    solve, sent = dt.solve, []

    def press(event):
        if event.x is not None and not sent:
            sent.append(number)
            os.kill(os.getpid(), number)

    monkeypatch.setattr(dt, "solve", lambda problem, **options: solve(problem, callback=press, **options))
    with surviving():
        ran = dovetail("solve", endless / "p.toml")
    result = dt.Result.from_json((endless / "s.json").read_text())
    assert ran.code == code, ran
    assert result.stop_reason is dt.StopReason.INTERRUPT
    assert result.status is dt.Status.FEASIBLE


def test_an_interrupt_while_files_are_written_is_heard_and_they_are_written(plan, tmp_path, monkeypatch):
    whole = dt.Result.to_json

    def to_json(result, *given):
        os.kill(os.getpid(), signal.SIGINT)
        return whole(result, *given)

    monkeypatch.setattr(dt.Result, "to_json", to_json)
    ran = dovetail("solve", *at_plan(plan), "--solution", tmp_path / "s.json", "-q")
    assert ran.code == 0  # all was done by then, and it is proved
    assert dt.Result.from_json((tmp_path / "s.json").read_text()).status is dt.Status.OPTIMAL


def test_a_predictor_that_fails_leaves_the_best_point_so_far(plan, tmp_path):
    (tmp_path / "f.pkl").write_bytes(pickle.dumps(Failing(60)))
    command = [plan / "plan.mps", "-p", f"{tmp_path / 'f.pkl'}:cement,ash->strength"]
    assert "can run any code when it is loaded; if you trust it as your own code, say --trust" in refused(
        "solve", *command
    )
    ran = dovetail("solve", *command, "--trust", "--solution", tmp_path / "s.json")
    assert ran.code == 5, ran
    assert ran.err == "dovetail: RuntimeError: no more answers\n"
    assert json.loads((tmp_path / "s.json").read_text())["stop_reason"] == "error"


# --- bad input --------------------------------------------------------------------------------------


def unsolved(monkeypatch):
    def solve(*_, **__):
        raise AssertionError("it was solved all the same")

    monkeypatch.setattr(dt, "solve", solve)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--solution", "nowhere/s.json"], "nowhere/s.json cannot be written: there is no such folder"),
        (["--report", "."], "cannot be written: it is a folder"),
        (["--solution", "plan.mps"], "an input file"),
        (["--report", "strength.onnx"], "an input file"),
        (["--solution", "a", "--report", "./a"], "two outputs have this name"),
        (["--start", "s.json"], "there is no file s.json"),
        (["--start", "plan.mps"], "plan.mps: this is not a result as --solution"),
        (["--gap", "-1"], "gap (relative) is -1.0"),
        (["--method", "magic"], "method 'magic' is not known"),
        (["-p", "strength.onnx:cement,ash->strenght"], "no variable 'strenght'; did you mean 'strength'?"),
        (["-p", "strength.onnx:cement,ash-"], "the shell takes > for itself: put it in quotes"),
        (["-p", "strength.onnx->strength"], "has no colon"),
        (["-p", "weak.onnx:cement->strength"], "there is no file weak.onnx"),
        (["-p", "strength.onnx:cement,,ash->strength"], "a name is missing"),
        (["-p", "plan.mps:cement->strength"], "no kind of file dovetail reads"),
        (["-p", "strength.onnx:cement->strength"], "--predictor 'strength.onnx:cement->strength': block0"),
    ],
)  # fmt: skip
def test_mistakes_are_found_before_the_solve(plan, tmp_path, monkeypatch, options, said):
    if options[0] not in ("--gap", "--method"):
        unsolved(monkeypatch)
    for file in plan.iterdir():
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    given = [] if options[0] == "-p" else ["-p", "strength.onnx:cement,ash->strength"]
    assert said in refused("solve", "plan.mps", *given, *options)
    assert sorted(tmp_path.iterdir()) == before


def test_names_are_split_outside_brackets_only(plan, tmp_path):
    text = (plan / "plan.mps").read_text().replace(" ash ", " x[2,1] ")
    (tmp_path / "p.mps").write_text(text)
    command = [tmp_path / "p.mps", "-p", f"{plan / 'strength.onnx'}:x[2,1], x[1,1] ->strength"]
    assert dovetail("solve", *command, "-q").code == 0


def test_a_disk_that_is_full_after_the_solve_is_one_line_and_spoils_nothing(plan, tmp_path, monkeypatch):
    (tmp_path / "s.json").write_text("old")
    real = os.fsync

    def fsync(number):
        if os.fstat(number).st_size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(number)

    monkeypatch.setattr(os, "fsync", fsync)
    ran = dovetail("solve", *at_plan(plan), "--solution", tmp_path / "s.json")
    assert ran.code == 2
    assert "  cement    3\n" in ran.out  # the only place where it is
    assert ran.err == f"dovetail: {tmp_path / 's.json'} cannot be written: No space left on device.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["s.json"]
    assert (tmp_path / "s.json").read_text() == "old"


class Closed(io.StringIO):
    """Standard output whose reader has left."""

    def write(self, text):
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def test_a_reader_who_has_left_changes_nothing(plan, tmp_path, monkeypatch):
    out, command = Closed(), ["solve", *map(str, at_plan(plan)), "--solution", str(tmp_path / "s.json")]
    monkeypatch.setattr(sys, "argv", ["dovetail", *command])
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert dt.Result.from_json((tmp_path / "s.json").read_text()).status is dt.Status.OPTIMAL


def test_a_problem_file_takes_no_predictor_option(solved):
    assert "names its predictors itself" in refused("solve", solved[0] / "problem.toml", "-p", "a:b->c")


def test_a_page_that_cannot_be_made_spoils_no_other_file(plan, tmp_path, monkeypatch):
    monkeypatch.delenv("DOVETAIL_STRICT")

    def fails(self, path):
        raise KeyError("made to fail")

    monkeypatch.setattr(dt.Result, "report", fails)
    names = ("solution", "report", "certificate")
    files = [f"--{name}={tmp_path / name}" for name in names]
    ran = dovetail("solve", *at_plan(plan), *files)
    assert ran.code == 0 and "report      none: it could not be written" in ran.out
    assert [(tmp_path / name).exists() for name in names] == [True, False, True]


def test_a_solve_is_resumed_from_its_files(plan, monkeypatch, tmp_path):
    folder = tmp_path / "here"
    shutil.copytree(plan, folder)
    monkeypatch.chdir(folder)
    predictor = "strength.onnx:cement,ash->strength"
    ran = dovetail("solve", "plan.mps", "-p", predictor, "--checkpoint", "run.dove", "--quiet")
    assert ran.code == 0, ran
    monkeypatch.chdir(tmp_path)  # paths of the checkpoint hold in any folder
    again = dovetail("resume", folder / "run.dove", "--quiet", "--solution", "s.json")
    assert again.code == 0 and again.out.split(",")[:2] == ran.out.split(",")[:2]
    assert (tmp_path / "s.json").exists()
    other = folder / "other.mps"
    other.write_text((folder / "plan.mps").read_text().replace("cost 2", "cost 3"))
    files = [folder / "run.dove", other, "-p", f"{folder}/{predictor}"]
    assert "the checkpoint is of another problem" in refused("resume", *files)
    result = dt.solve(bowl(), checkpoint=folder / "python.dove", log=False)
    assert result.x is not None and "names no files" in refused("resume", folder / "python.dove")
