"""Damaged files: each is read or refused by a typed error; no crash, no hang, no memory without end."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import FULL

COUNTS = {".mps": 4000, ".mps.gz": 1000, ".lp": 5000, ".onnx": 5000, ".json": 5000}
"""Of each kind, at full volume."""
SHARE = 1.0 if FULL else 0.015
PER_FILE = 5.0
"""Seconds after which a file, on the average, counts as hanging."""


@pytest.mark.parametrize("suffix", COUNTS)
def test_damaged_files_are_read_or_refused(suffix):
    count = int(COUNTS[suffix] * SHARE)
    done = subprocess.run(
        [sys.executable, "-m", "tests.robustness.reader", suffix, "0", str(count)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120 + PER_FILE * count,
        check=False,
    )
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"the reader ended after {lines[-1:]}: {done.stderr[-2000:]}"
    assert len(lines) == count
    wrong = ["\t".join(line) for line in lines if line[2] not in ("read", "refused")]
    assert not wrong, "\n".join(wrong)
    tally = Counter(line[2] for line in lines)
    assert tally["refused"] > 0
    if suffix != ".mps.gz":  # its sum of all bytes tells every damage
        assert tally["read"] > 0
