"""Damaged files: each is read or refused by a typed error; no crash, no hang, no memory without end."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import volume
from tests.robustness.reader import tried

COUNTS = {".mps": 4000, ".mps.gz": 1000, ".lp": 5000, ".onnx": 5000, ".json": 5000}
"""Of each kind, at full volume."""
FEW = 0.008
"""The share of them that is read in every run, in this process."""
PER_FILE = 5.0
"""Seconds after which a file, on the average, counts as hanging."""


def seen(suffix, ends):
    """How files ended; no damaged .mps.gz has to be read: its sum of all bytes tells every damage."""
    return set(ends) | ({"read"} if suffix == ".mps.gz" else set())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("suffix", COUNTS)
def test_damaged_files_are_read_or_refused(suffix, tmp_path):
    ends = [tried(suffix, seed, str(tmp_path))[1] for seed in range(int(FEW * COUNTS[suffix]))]
    assert seen(suffix, ends) == {"read", "refused"}


@volume("thousands of files, under a limit of memory")
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="hardware: only Linux limits memory")
@pytest.mark.parametrize("suffix", COUNTS)
def test_damaged_files_take_no_process_and_no_memory(suffix):
    total = COUNTS[suffix]
    done = subprocess.run(
        [sys.executable, "-m", "tests.robustness.reader", suffix, "0", str(total)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120 + PER_FILE * total,
        check=False,
    )
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"the reader ended after {lines[-1:]}: {done.stderr[-2000:]}"
    assert len(lines) == total
    assert seen(suffix, [line[3] for line in lines]) == {"read", "refused"}
