"""Every example runs to its end as a user would run it, and is in the table of examples/README.md."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import FULL

FOLDER = Path(__file__).parent.parent / "examples"
SHORTER = """
import runpy, sys
import dovetail as dt
solve = dt.solve

def enough(event):
    if event.x is not None:
        event.stop()

dt.solve = lambda *args, **options: solve(*args, **options, callback=enough)
runpy.run_path(sys.argv[1], run_name="__main__")
"""
"""The example as it is, but its solves end at their first point."""
EXAMPLES = sorted(FOLDER.glob("*.py"))


@pytest.mark.long
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs(path):
    command = [sys.executable, path] if FULL else [sys.executable, "-c", SHORTER, path]
    done = subprocess.run(command, capture_output=True, text=True, cwd=FOLDER)
    assert done.returncode == 0, done.stderr
    assert "prediction 0.0e+00" in done.stdout  # the point was checked against the predictor itself


def test_all_are_listed():
    text = (FOLDER / "README.md").read_text()
    assert {path.name for path in EXAMPLES} == {
        line.split("`")[1] for line in text.splitlines() if "| `" in line
    }
