"""The command line as a person uses it: in a process of its own."""

import os
import signal
import subprocess
import sys

import pytest

import dovetail as dt
from tests.processes import hear_ctrl_c


def dovetail(*arguments, **options):
    environment = {k: v for k, v in os.environ.items() if k != "DOVETAIL_DATA"}
    return subprocess.run(
        [sys.executable, "-c", "from dovetail.cli import main; main()", *arguments],
        capture_output=True, text=True, env={**environment, "COLUMNS": "120"}, timeout=300, **options,
    )  # fmt: skip


def refused(arguments, capsys, monkeypatch):
    """What a command that ends with exit code 2 says, in this process: torch is imported once."""
    from dovetail.cli import main

    monkeypatch.setattr(sys, "argv", ["dovetail", *arguments])
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("DOVETAIL_DATA", raising=False)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    return capsys.readouterr().err


def test_help_and_version():
    done = dovetail("--help")
    assert done.returncode == 0
    assert "demo" in done.stdout and "list" in done.stdout
    assert dovetail("--version").stdout.strip() == f"dovetail {dt.__version__}"


def test_list_names_what_is_here():
    done = dovetail("list")
    assert done.returncode == 0
    for name in (
        "dual-decomposition",
        "paper",
        "highs",
        "piqp",
        "scip",
        "ProjectedGradient",
        "torch.nn.Module",
        "water",
        "tree",
    ):
        assert name in done.stdout
    assert "not installed" not in done.stdout


@pytest.mark.long
def test_the_demo_ends_with_a_verified_solution(tmp_path):
    page = tmp_path / "demo.html"
    done = dovetail("demo", "--time-limit", "2", "--report", str(page))
    assert done.returncode == 0, done.stderr
    for part in (
        "potable when nothing is done",
        "potable after treatment",
        "newly flipped",
        "The solution is verified",
    ):
        assert part in done.stdout, part
    assert "<svg" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (("demo", "--network", "banana"), "network 'banana' is not known"),
        (("demo", "--data", "/nowhere"), "water_quality.csv is not there"),
        (("demo", "--samples", "0"), "n is 0"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(arguments, culprit, capsys, monkeypatch):
    said = refused(arguments, capsys, monkeypatch)
    assert culprit in said
    assert "Traceback" not in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize("arguments", [("dance",), ("demo", "--sampels", "3")])
def test_unknown_commands_and_options(arguments, capsys, monkeypatch):
    assert arguments[-2 if len(arguments) > 1 else 0] in refused(arguments, capsys, monkeypatch)


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
            if line.startswith("    3 "):  # the third iteration has been printed
                break
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert process.returncode == 130
    assert "interrupt" in rest
    assert "The solution is verified" in rest
