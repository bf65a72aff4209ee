"""Every example runs to its end as a user would run it, and is in the table of examples/README.md."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import FULL
from tests.programs import make_patient, sweep_here

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))


def enough(event):
    if event.x is not None:
        event.stop()


@pytest.mark.long
@pytest.mark.parametrize("path", EXAMPLES if FULL else EXAMPLES[1::4], ids=lambda path: path.stem)
def test_it_runs(path, monkeypatch, capsys):
    """As a user would run it; or in this process, to the first point of each solve."""
    if FULL:
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, cwd=FOLDER)
        assert done.returncode == 0, done.stderr
        said = done.stdout
    else:
        monkeypatch.chdir(FOLDER)
        monkeypatch.setattr(sys, "argv", [str(path)])
        make_patient(monkeypatch, callback=enough)
        sweep_here(monkeypatch)
        runpy.run_path(str(path), run_name="__main__")
        said = capsys.readouterr().out
    assert "predictions" in said  # the point was checked against the predictor itself


def test_all_are_listed():
    text = (FOLDER / "README.md").read_text()
    assert {path.name for path in EXAMPLES} == {
        line.split("`")[1] for line in text.splitlines() if "| `" in line
    }
