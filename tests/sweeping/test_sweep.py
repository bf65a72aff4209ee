"""Whole sweeps over processes: rows as they come, failures reported, gone on with, interrupted.

What builds the problems: found by other processes, and fit for every case, or refused before anything.

One case in one process: its row, whatever it raises.

The file: rows as they come, cut where it was killed, refused where it is not ours.
"""

import io
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

import dovetail as dt
from dovetail.sweeping.sweep import ResultsFile, name_of, solved
from dovetail.sweeping.sweep_result import SweepRow
from tests.conftest import FULL
from tests.processes import gone, hear_ctrl_c, surviving
from tests.robustness.interrupted import left_over
from tests.sweeping.builds import nothing, pair, plant

ROOT = Path(__file__).parent.parent.parent


def solved_here(name, build, cases, jobs, keep):
    return (solved(name, build, case, keep) for case in cases)


@pytest.mark.long
def test_failures_are_rows_and_are_tried_again(tmp_path, monkeypatch):
    """A case that kills its process costs that case; what is in the file is not solved again.

    Processes take seconds to begin: here at full volume, in every run in tests/run/test_processes.py.
    """
    if not FULL:
        monkeypatch.setattr("dovetail.sweeping.sweep.solved_cases", solved_here)
    out, mended, log = tmp_path / "rows.jsonl", tmp_path / "mended", io.StringIO()
    troubles = ["", "raise", *(["kill", "exit"] if FULL else [])]
    grid = [{"trouble": trouble, "mended": str(mended)} for trouble in troubles]
    first = dt.sweep(plant, grid, out=out, log=log)
    assert [row.case for row in first] == grid
    assert first[0].result.objective == -4.0
    errors = first.column("error")
    assert errors[0] == ""
    assert errors[1].startswith("build: ValueError: no such plant")
    killed = "its process was killed by SIGKILL, perhaps for lack of memory"
    assert errors[2:] == [killed, "its process ended with exit code 3"] * FULL
    assert len(out.read_text().splitlines()) == len(grid)
    assert f"{len(grid)}/{len(grid)}" in log.getvalue()

    mended.touch()
    with out.open("a") as file:
        file.write('{"case": {"trou')
    log = io.StringIO()
    second = dt.sweep(plant, grid, out=out, log=log)
    assert second.column("objective") == [-4.0] * len(grid)
    assert second.failed == ()
    assert second[0].seconds == first[0].seconds  # read, not solved
    said = "".join(log.getvalue().split())  # paths are long, and lines are not
    assert f"thelastlineof{out}wascutoff" in said
    assert f"1arein{out}already" in said


def test_what_is_done_starts_no_process(tmp_path, monkeypatch):
    out, log = tmp_path / "rows.jsonl", io.StringIO()
    ResultsFile.open(out, "plant").add(SweepRow({"sense": "min"}, "plant", status="optimal"))
    monkeypatch.setattr("dovetail.sweeping.sweep.pooled", None)
    table = dt.sweep(plant, {"sense": ["min"]}, out=out, n_jobs=10**6, log=log)
    assert table.column("status") == ["optimal"]
    assert f"{10**6} processes were requested" in log.getvalue()


@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        ({"grid": []}, "grid is empty"),
        ({"grid": {"sense": [{1}]}}, r"sense is \{1\}, which JSON"),
        ({"grid": {"colour": ["red"]}}, "does not take case 0 of grid"),
        ({"build": lambda sense: None}, "cannot be sent to another process"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"out": 3}, "out is 3"),
        ({"out": __file__ + "/rows.jsonl"}, "cannot be written"),
        ({"cluster": "local"}, "cluster is 'local'"),
        ({"log": 3}, "log is 3"),
    ],
)
def test_refuses_before_anything_starts(options, culprit, monkeypatch):
    monkeypatch.setattr("dovetail.sweeping.sweep.pooled", None)
    given = {"build": plant, "grid": {"sense": ["min"]}, "log": False, **options}
    with pytest.raises(dt.OptionError, match=culprit):
        dt.sweep(given.pop("build"), given.pop("grid"), **given)


def test_a_runner_that_fails_gives_the_rows_it_had(monkeypatch):
    def rows(name, build, cases, jobs, keep):
        yield SweepRow(cases[0], "plant")
        raise MemoryError("none left")

    monkeypatch.setattr("dovetail.sweeping.sweep.solved_cases", rows)
    with pytest.raises(MemoryError) as raised:
        dt.sweep(plant, {"sense": ["min", "max"]}, log=False)
    assert raised.value.result.column("sense") == ["min"]


def test_sigterm_returns_what_there_is(monkeypatch):
    def rows(name, build, cases, jobs, keep):
        yield SweepRow(cases[0], "plant")
        os.kill(os.getpid(), signal.SIGTERM)
        pytest.fail("went on")

    monkeypatch.setattr("dovetail.sweeping.sweep.solved_cases", rows)
    with surviving():
        assert dt.sweep(plant, {"sense": ["min", "max"]}, log=False).column("sense") == ["min"]
        with pytest.raises(SystemExit, match="143"):
            dt.sweep(plant, {"sense": ["min", "max"]}, log=False)


PROGRAM = """
import os, time
import dovetail as dt

def build(nap):
    if nap:
        print("asleep", os.getpid(), flush=True)
        time.sleep(nap)
    from tests.small import knapsack
    return knapsack()

{guard}
    table = dt.sweep(build, {{"nap": [0, 600]}})
    print(table, flush=True)
"""


def started(tmp_path, guard):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(guard=guard))
    return subprocess.Popen(
        [sys.executable, str(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
        preexec_fn=hear_ctrl_c, start_new_session=True,
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.skipif(not FULL, reason="volume: four processes and their imports")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_returns_what_there_is(tmp_path, number):
    """Sent to every process of the group, as a terminal and `timeout` do."""
    with started(tmp_path, 'if __name__ == "__main__":') as process:
        said = ""
        while "asleep" not in said:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            said += line
        pid = int(said.rsplit("asleep", 1)[1])
        os.killpg(process.pid, number)
        rest, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "1/2  nap 0: optimal" in said
    assert "<SweepResult: 1 of 2 cases, 0 failed>" in rest
    assert "Traceback" not in errors
    assert left_over(process.pid) == []
    assert gone(pid)


@pytest.mark.long
@pytest.mark.skipif(not FULL, reason="volume: two processes and their imports")
def test_a_program_without_a_guard_is_told(tmp_path):
    with started(tmp_path, "if True:") as process:
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    last = errors.strip().splitlines()[-1]
    assert "OptionError: a process for build 'build' ended with exit code 1 before it began" in last
    assert '`if __name__ == "__main__":`' in last


def test_what_other_processes_find_has_a_name():
    for build in (nothing, partial(nothing, b=2)):
        assert name_of(build, [{"a": 1}]) == "nothing"


def test_what_other_processes_cannot_find_is_refused(monkeypatch):
    def local(a):
        return a

    for build in (local, lambda a: a):
        with pytest.raises(dt.OptionError, match=r"cannot be sent .* it has to be a function of a file"):
            name_of(build, [{"a": 1}])
    with pytest.raises(dt.OptionError, match="build is 3"):
        name_of(3, [{}])
    typed = SimpleNamespace(typed=local)  # as a notebook or `python -c` has it: no file, no spec
    monkeypatch.setitem(sys.modules, "__main__", typed)
    monkeypatch.setattr(local, "__module__", "__main__")
    monkeypatch.setattr(local, "__qualname__", "typed")
    with pytest.raises(dt.OptionError, match="build 'typed' is not in a file"):
        name_of(local, [{"a": 1}])


@pytest.mark.parametrize("case", [{}, {"a": 1, "c": 2}])
def test_cases_it_does_not_take_are_refused(case):
    with pytest.raises(dt.OptionError, match="build 'nothing' does not take case 1 of grid"):
        name_of(nothing, [{"a": 1}, case])


def test_functions_that_do_not_tell_what_they_take_are_taken():
    assert name_of(max, [{"a": 1}]) == "max"


def test_a_case_is_solved():
    row = solved("plant", plant, {"sense": "max"}, True)
    assert (row.status, row.objective, row.error) == ("optimal", 2.0, "")
    assert row.result.names == ("a", "b", "c", "d", "y")


@pytest.mark.parametrize(
    ("build", "case", "error"),
    [
        (plant, {"trouble": "raise"}, "build: ValueError: no such plant (builds.py, line "),
        (plant, {"trouble": "leave"}, "build: SystemExit: 4"),
        (nothing, {"a": 1}, "solve: "),
        (pair, {"a": 3}, "build: dovetail.core.errors.OptionError: build returned a tuple"),
        (pair, {"a": {"colour": 1}}, "solve: TypeError: solve() got an unexpected keyword argument 'colour'"),
        (pair, {"a": {"method": "guess"}}, "solve: dovetail.core.errors.OptionError: method 'guess'"),
    ],
)
def test_what_goes_wrong_is_in_the_row(build, case, error):
    row = solved("plant", build, case, True)
    assert row.error.startswith(error)
    assert row.status is None
    assert row.full is None


def row(a, error=""):
    return SweepRow({"a": a}, "plant", error=error)


def test_rows_are_there_again_and_the_later_one_counts(tmp_path):
    path = tmp_path / "new" / "rows.jsonl"
    file = ResultsFile.open(path, "plant")
    for each in (row(1, "no memory"), row(2), row(1)):
        file.add(each)
    again = ResultsFile.open(path, "plant")
    assert [(each.case, each.error) for each in again.rows.values()] == [({"a": 1}, ""), ({"a": 2}, "")]
    assert not again.cut_off


def test_every_cut_leaves_whole_rows_and_a_file_to_go_on_with(tmp_path):
    path = tmp_path / "rows.jsonl"
    file = ResultsFile.open(path, "plant")
    file.add(row(1))
    first = path.stat().st_size
    file.add(row(2))
    whole = path.read_bytes()
    for end in range(first, len(whole), 7):
        path.write_bytes(whole[:end])
        cut = ResultsFile.open(path, "plant")
        assert len(cut.rows) == 1
        assert cut.cut_off == (end > first)
        cut.add(row(3))
        assert [each.case["a"] for each in ResultsFile.open(path, "plant").rows.values()] == [1, 3]


def test_what_cannot_be_used_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "rows.jsonl", tmp_path):
        with pytest.raises(dt.OptionError, match="out is .* cannot be written"):
            ResultsFile.open(path, "plant")


def test_files_of_others_are_refused_and_left_alone(tmp_path):
    path = tmp_path / "rows.jsonl"
    ResultsFile.open(path, "plant").add(row(1))
    with pytest.raises(dt.OptionError, match="has rows of 'plant', this is a sweep of 'house'"):
        ResultsFile.open(path, "house")
    text = path.read_bytes() + b"\xff\n" + path.read_bytes()[:9]
    path.write_bytes(text)
    with pytest.raises(dt.OptionError, match="line 2: .*take the line out"):
        ResultsFile.open(path, "plant")
    assert path.read_bytes() == text
