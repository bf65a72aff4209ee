"""`dovetail bench` as a person uses it: quick runs, bad input, Ctrl-C, a kill and a resume.

In a process of its own where one is the point; elsewhere here, where everything is imported already.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from dovetail_study import EXPERIMENTS, bench, contestants, theorem1
from dovetail_study.bench import _console, experiment_named
from dovetail_study.experiment import QUICK_SEEDS, BenchSettings
from dovetail_study.ledger import Ledger
from dovetail_study.page import APPENDIX
from tests.conftest import FULL
from tests.processes import hear_ctrl_c
from tests.test_cli import ended, refused

EPOCHS, ITERATIONS = (contestants.QUICK_EPOCHS, theorem1.QUICK_ITERATIONS) if FULL else (1, 8)
"""Networks that are barely trained: what is looked at here does not ask how well."""
SOME = None if FULL else ("paper", "auto", "big-m", "exact", "size")
"""The methods that are run; all are made in test_runs.py, and others solve in test_contestants.py."""
ONLY = ("--methods", ",".join(SOME)) if SOME else ()
PROGRAM = (
    "from dovetail_study import bench, contestants, theorem1; "
    f"contestants.QUICK_EPOCHS, theorem1.QUICK_ITERATIONS = {EPOCHS}, {ITERATIONS}; "
    "bench.save = lambda *given: None; from dovetail.cli import main; main()"
)
"""Without figures, which take longer than all else of a small bench: test_figures.py has them."""
QUICK = [sys.executable, "-c", PROGRAM]
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "DOVETAIL_DATA"}
METHODS = "ssg,paper,dual-decomposition" if FULL else "ssg,ssg-one-step"
SHORT = ("bench", "e3", "--quick", "--methods", METHODS, "--time-limit", "60")
"""Limited by iterations: every objective is decided by the seed."""

CLAIMS = (
    "E1 headline", "Model size by big-M", "E2 success of 2x16", "E2 success from 16x128", "E2 64x512",
    "E2 time per iteration", "E2 big-M beyond", "Memory of big-M", "Introduction: SCIP times out",
    "E4 accuracy", "E4 no distortion", "E4 convergence", "E4 seconds at n = 200", "E4 big-M cannot write",
    "Introduction: CNN and LSTM", "CNN and LSTM reach the same objective", "E5 seconds of SCIP",
    "Near-optimal quality", "Dual updates are needed",
    "E5 seconds of the barrier", "E5 seconds of projected gradient", "E5 speed-up of the barrier",
    "E5 speed-up of projected gradient", "Swapping the sub-solver", "E5 barrier over", "Barrier is better",
    "Theorem 1: the iterates", "Theorem 1: every limit", "Theorem 1: residuals",
    "Theorem 1: the augmented Lagrangian", "Introduction: no loss of optimality", "Lemma to Theorem 1",
    "Proof of Theorem 1", "Theorem 1 repaired", "Theorem 2",
    "Convergence depends on rho", "Raising rho adaptively",
    "E1 quality: DD beside big-M's", "E1 quality: DD beside the best",
    "E1 with SCIP for the MIP steps: DD", "E1 with SCIP for the MIP steps: speed",
    "E1 time", "E1 speed-up", "E3 SSG loses", "E3 DD keeps", "E3 removing the dual update",
    "E3 SSG in place of DD", "E3 without dual updates", "E3 iterations of SSG", "E3 iterations of DD",
    "E3 speed-up of SSG", "E3 speed-up of DD",
)  # fmt: skip
"""Every claim of the paper, by how its verdict begins; some are judged with both kinds of budgets."""


def here(arguments: Sequence[str], *, drawn: bool = False) -> None:
    """A command that ends well, in this process as in a new one: nothing of it is left behind."""
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contestants, "QUICK_EPOCHS", EPOCHS)
        patch.setattr(theorem1, "QUICK_ITERATIONS", ITERATIONS)
        if not drawn:
            patch.setattr(bench, "save", lambda *given: None)
        assert ended(*arguments) == 0
    contestants._judge.cache_clear()  # networks of so few epochs
    torch.set_num_threads(threads)


def rows_of(folder: Path) -> dict[str, dict]:
    lines = (folder / "results.jsonl").read_text().splitlines()[1:]
    return {record["key"]: record for record in map(json.loads, lines)}


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """One whole quick bench, shared by the tests that look at it; in a process of its own at full volume."""
    folder = tmp_path_factory.mktemp("bench")
    limit = "2" if FULL else "0.02"
    arguments = ("bench", "all", "--quick", *ONLY, "--time-limit", limit, "--out", str(folder))
    if FULL:
        command = [*QUICK, *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, env=ENVIRONMENT, timeout=900, check=False
        )
        return folder, done
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        here(arguments)
    return folder, SimpleNamespace(returncode=0, stdout=out.getvalue(), stderr=err.getvalue())


class Quick:
    """`dovetail bench all --quick`, from nothing to the page."""

    def test_it_runs_clean_and_makes_every_run(self, quick):
        folder, done = quick
        assert done.returncode == 0, done.stderr[-2000:]
        assert "Traceback" not in done.stderr
        settings = BenchSettings(quick=True, seeds=QUICK_SEEDS, methods=SOME)
        planned = {run.key for name in EXPERIMENTS for run in experiment_named(name).runs(settings)}
        assert set(rows_of(folder)) == planned

    def test_every_claim_has_a_verdict_and_every_verdict_a_line(self, quick):
        folder, done = quick
        ledger = Ledger.open(folder)
        verdicts = [v for name in EXPERIMENTS for v in experiment_named(name).verdicts(ledger.of(name))]
        for claim in CLAIMS:
            there = [verdict for verdict in verdicts if verdict.claim.startswith(claim)]
            assert there, claim
            assert len({verdict.reading for verdict in there}) == len(there), claim
        page = "".join((folder / name).read_text() for name in ("results.md", APPENDIX))
        said = " ".join(done.stdout.split())
        for verdict in verdicts:
            assert verdict.claim in said
            assert verdict.claim.replace("|", "\\|") in page
            assert f"**{verdict.word.value}**" in page

    def test_with_every_run_done_it_only_reports(self, quick):
        folder, _ = quick
        before = (folder / "results.jsonl").read_bytes()
        with redirect_stdout(StringIO()) as said:
            here(("bench", "all", "--resume", *ONLY, "--out", str(folder)))
        assert re.search(r"(\d+) runs, \1 of them done", said.getvalue())
        assert (folder / "results.jsonl").read_bytes() == before


@pytest.mark.long
def test_all_of_it_quickly(quick):
    """One test, since the bench takes minutes and workers do not share it."""
    for name, check in vars(Quick).items():
        if name.startswith("test_"):
            check(None, quick)


@pytest.mark.long
@pytest.mark.skipif(not FULL, reason="volume: three benches")
def test_killed_and_resumed_it_has_the_same_rows_and_objectives(tmp_path):
    here((*SHORT, "--out", str(tmp_path / "whole")))
    whole = rows_of(tmp_path / "whole")
    pause = random.Random(time.time_ns()).uniform(0.0, 1.5)
    with subprocess.Popen([*QUICK, *SHORT, "--out", str(tmp_path / "cut")], env=ENVIRONMENT) as process:
        path = tmp_path / "cut" / "results.jsonl"
        while not path.exists() or path.read_text().count("\n") < 2:
            time.sleep(0.02)
        time.sleep(pause)
        process.kill()
    here((*SHORT, "--resume", "--out", str(tmp_path / "cut")))
    cut = rows_of(tmp_path / "cut")
    assert set(cut) == set(whole)
    fields = ("objective", "potable", "iterations", "residual", "accuracy")
    for key, row in whole.items():
        assert [row[name] for name in fields] == [cut[key][name] for name in fields], (key, pause)


@pytest.mark.skipif(not FULL, reason="volume: a process; tests/cli and tests/robustness interrupt others")
def test_ctrl_c_keeps_the_rows_prints_the_table_and_can_be_resumed(tmp_path):
    command = [*QUICK, "bench", "sensitivity", "--quick", "--time-limit", "0.2", "--out", str(tmp_path)]
    with subprocess.Popen(
        command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, preexec_fn=hear_ctrl_c
    ) as process:
        path = tmp_path / "results.jsonl"
        while not path.exists() or path.read_text().count("\n") < 3:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out = process.stdout.read()
    assert process.returncode == 130
    assert "Interrupted; what is done is kept" in out
    assert "Sensitivity to rho and step size" in out
    kept = rows_of(tmp_path)
    assert len(kept) >= 2
    assert all(row["stop"] != "interrupt" for row in kept.values())
    here(("bench", "sensitivity", "--resume", "--methods", "paper", "--out", str(tmp_path)))
    assert set(kept) <= set(rows_of(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("e9",), "experiment 'e9' is not known; choose e1, e2, e3, e4, e5, readings, theory"),
        (("e1", "--seeds", "42,x"), "--seeds is '42,x'; give whole numbers"),
        (("e1", "--seeds", ""), "--seeds is ''"),
        (("e1", "--seeds", "-3"), "--seeds is '-3'"),
        (
            ("e1", "--methods", "magic"),
            "--methods: 'magic' is not among paper, paper-scip, dual-decomposition",
        ),
        (("e1", "--time-limit", "-1"), "--time-limit is -1"),
        (("e1", "--time-limit", "0"), "--time-limit is 0"),
        (("e1", "--writing-limit", "0"), "--writing-limit is 0.0; give a number of seconds above 0"),
        (("e1", "--memory-limit", "-2"), "--memory-limit is -2.0; give a number of GB above 0"),
        (("e1", "--networks", "3x3"), "--methods and --networks leave nothing to run"),
        (("e1", "--data", "nowhere"), "water_quality.csv is not there; give the folder"),
        (("e1", "--resume"), "results.jsonl is not there; leave out --resume"),
        (
            ("e1", "--report-only"),
            "results.jsonl is not there; leave out --resume, --merge and --report-only",
        ),
        (("e1", "--merge", "nowhere"), "results.jsonl is not there; leave out --resume, --merge"),
    ],
)
def test_bad_input_is_refused_with_the_fix(tmp_path, arguments, said, capsys):
    heard = refused(("bench", *arguments, "--out", str(tmp_path / "out")), capsys)
    assert said in " ".join(heard.split())
    assert "Traceback" not in heard
    assert not (tmp_path / "out" / "results.jsonl").exists()


def test_settings_of_a_file_are_kept_and_others_refused(tmp_path, capsys):
    Ledger.create(tmp_path, BenchSettings(quick=True, time_limit=2.0, baseline_limit=2.0))
    out = ("--out", str(tmp_path))
    heard = refused(("bench", "theory", "--resume", "--time-limit", "9", *out), capsys)
    assert "was made with time limit 2.0, not 9.0" in " ".join(heard.split())
    heard = refused(("bench", "theory", *out), capsys)
    assert "is there already; go on with --resume" in " ".join(heard.split())


def test_a_library_that_is_missing_skips_its_runs_and_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyscipopt_ml.add_predictor", None)
    cell = ("--quick", "--networks", "2x16", "--time-limit", "0.2")
    here(("bench", "e4", *cell, "--out", str(tmp_path)))
    said = capsys.readouterr().out
    assert "skipped: method" in said and "PySCIPOpt-ML" in said
    assert {row["method"] for row in rows_of(tmp_path).values()} == {"paper", "dual-decomposition", "auto"}


FAST = ("bench", "e3", "--quick", "--methods", "ssg-one-step")
"""A run in each of three cells, of no time."""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The file of a bench of three runs, to be copied."""
    folder = tmp_path_factory.mktemp("small")
    here((*FAST, "--seeds", "1", "--out", str(folder)), drawn=True)
    return folder / "results.jsonl"


def copied(small: Path, folder: Path, *changes: tuple[str, str]) -> Path:
    """The same file with other words in it."""
    text = small.read_text()
    for old, new in changes:
        text = re.sub(old, new, text)
    folder.mkdir(exist_ok=True)
    (folder / "results.jsonl").write_text(text)
    return folder


def test_the_page_shows_the_figure_that_was_drawn(small):
    shown = re.findall(r"!\[.*?\]\((.*?)\)", (small.parent / "results.md").read_text())
    assert shown
    for figure in (*shown, "figures/e3.png", "figures/e3.svg"):
        assert (small.parent / figure).stat().st_size > 0


def test_rows_of_two_machines_become_one_file_and_one_page(small, tmp_path, capsys):
    one = copied(small, tmp_path / "one")
    two = copied(small, tmp_path / "two", ('"seed": 1', '"seed": 2'), ("seed=1", "seed=2"))
    theirs = (two / "results.jsonl").read_bytes()
    merge = ("bench", "all", "--merge", str(two), "--out", str(one))
    here(merge)
    assert "3 rows taken over" in capsys.readouterr().out
    assert {row["seed"] for row in rows_of(one).values()} == {1, 2}
    assert rows_of(two).items() <= rows_of(one).items()
    assert (two / "results.jsonl").read_bytes() == theirs
    assert "seeds 1, 2" in (one / APPENDIX).read_text()
    here(merge)
    assert "0 rows taken over" in capsys.readouterr().out
    assert len(rows_of(one)) == 6


def test_another_commit_goes_on_only_if_told_and_every_row_keeps_its_own(small, tmp_path, capsys):
    out = ("--out", str(copied(small, tmp_path, ('"commit": "[^"]*"', '"commit": "abc"'))))
    before = (tmp_path / "results.jsonl").read_bytes()
    more = (*FAST, "--seeds", "1,2", "--resume", *out)
    heard = " ".join(refused(more, capsys).split())
    assert "has rows of commit abc" in heard and "add --mix-commits" in heard
    here(("bench", "all", "--report-only", *out))
    here((*FAST, "--seeds", "1", "--resume", *out))  # nothing is missing, nothing is mixed
    assert (tmp_path / "results.jsonl").read_bytes() == before
    here((*more, "--mix-commits"))
    commits = {(row["seed"], row["commit"] == "abc") for row in rows_of(tmp_path).values()}
    assert commits == {(1, True), (2, False)}


def test_what_is_no_terminal_gets_79_columns(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert _console().width <= 79
