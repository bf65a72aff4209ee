"""The command line as a person uses it: in a process of its own."""

import os
import signal
import subprocess
import sys

import pytest

import dovetail as dt
from dovetail.cli import main
from dovetail_study import EXPERIMENTS
from tests.conftest import FULL, volume
from tests.core.test_table import TABLES
from tests.processes import hear_ctrl_c


def dovetail(*arguments, **options):
    environment = {k: v for k, v in os.environ.items() if k != "DOVETAIL_DATA"}
    return subprocess.run(
        [sys.executable, "-c", "from dovetail.cli import main; main()", *arguments],
        capture_output=True, text=True, env={**environment, "COLUMNS": "120"}, timeout=300, **options,
    )  # fmt: skip


def ended(*arguments):
    """The exit code of a command, in this process: torch is imported once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["dovetail", *arguments])
        patch.setenv("COLUMNS", "120")
        patch.delenv("DOVETAIL_DATA", raising=False)
        with pytest.raises(SystemExit) as end:
            main()
    return end.value.code or 0


def refused(arguments, capsys):
    """What a command that ends with exit code 2 says."""
    assert ended(*arguments) == 2
    return capsys.readouterr().err


def test_help_and_version():
    done = dovetail("--help")
    assert done.returncode == 0
    assert "demo" in done.stdout and "list" in done.stdout
    assert dovetail("--version").stdout.strip() == f"dovetail {dt.__version__}"


def test_list_names_what_is_here(capsys):
    assert ended("list") == 0
    said = capsys.readouterr().out
    for table in TABLES:
        assert f"{table.title}:" in said
        for part in table.values():
            assert f"  {part.name} " in said and part.text in said
    missing = [line for line in said.splitlines() if "not installed" in line]
    assert all("catboost" in line for line in missing)  # too heavy for the quick tests


def test_list_of_some_families_only(capsys):
    assert ended("list", "engines") == 0
    assert capsys.readouterr().out.splitlines()[0] == "engines for the MIP step:"
    assert "family 'motors' is not known; choose methods, engines" in refused(["list", "motors"], capsys)


@pytest.mark.parametrize(
    ("typed", "offered"), [("dovetail bench ", [*EXPERIMENTS, "all"]), ("dovetail list eng", ["engines"])]
)
def test_shells_complete_names_from_the_tables(typed, offered):
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split(" ")) - 1)}
    done = subprocess.run(
        [sys.executable, "-c", "from dovetail.cli import app; app(prog_name='dovetail')"],
        capture_output=True, text=True, env={**os.environ, "_DOVETAIL_COMPLETE": "complete_bash", **words},
    )  # fmt: skip
    assert done.stdout.split() == offered


@pytest.mark.long
@volume("the water problem is solved by many other tests")
def test_the_demo_ends_with_a_verified_solution(tmp_path, capsys):
    page = tmp_path / "demo.html"
    assert ended("demo", "--samples", "6", "--time-limit", "60", "--report", str(page)) == 0
    said = capsys.readouterr().out
    for part in (
        "predicted potable without treatment",
        "The network is wrong on ",
        "predicted potable after treatment",
        "newly potable",
        "The solution satisfies every constraint",
    ):
        assert part in said, part
    assert all(len(line) <= 79 for line in said.splitlines())
    assert "<svg" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (("demo", "--network", "banana"), "network 'banana' is not known"),
        (("demo", "--data", "/nowhere"), "water_quality.csv is not there"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(arguments, culprit, capsys):
    said = refused(arguments, capsys)
    assert culprit in said
    assert "Traceback" not in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize("arguments", [("dance",), ("demo", "--sampels", "3")])
def test_unknown_commands_and_options(arguments, capsys):
    assert arguments[-2 if len(arguments) > 1 else 0] in refused(arguments, capsys)


@pytest.mark.skipif(
    not FULL, reason="volume: solves are interrupted in tests/robustness, commands in tests/cli"
)
def test_ctrl_c_ends_the_demo_with_its_best_point_and_exit_code_130():
    command = [
        sys.executable,
        "-u",
        "-c",
        "from dovetail.cli import main; main()",
        "demo",
        "--samples",
        "400",
    ]
    with subprocess.Popen(
        [*command, "--network", "2x16"], stdout=subprocess.PIPE, text=True, preexec_fn=hear_ctrl_c
    ) as process:
        for line in process.stdout:
            if line[:7].strip().replace(".", "").isdigit():  # a row of the log: there is a point
                break
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert process.returncode == 130
    assert "interrupt" in rest
    assert "The solution satisfies every constraint" in rest
