"""Damaged files: each is read or refused by a typed error; no crash, no hang, no memory without end."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import FULL

COUNTS = {".mps": 4000, ".mps.gz": 1000, ".lp": 5000, ".onnx": 5000, ".json": 5000}
"""Of each kind, at full volume."""
SHARE = 1.0 if FULL else 0.008
TOGETHER = [[suffix] for suffix in COUNTS] if FULL else [list(COUNTS)]
"""Kinds that one process reads: it takes seconds to begin."""
PER_FILE = 5.0
"""Seconds after which a file, on the average, counts as hanging."""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="hardware: only Linux limits memory")
@pytest.mark.parametrize("suffixes", TOGETHER, ids=" ".join)
def test_damaged_files_are_read_or_refused(suffixes):
    counts = {suffix: int(COUNTS[suffix] * SHARE) for suffix in suffixes}
    total = sum(counts.values())
    wanted = [word for suffix, count in counts.items() for word in (suffix, "0", str(count))]
    done = subprocess.run(
        [sys.executable, "-m", "tests.robustness.reader", *wanted],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120 + PER_FILE * total,
        check=False,
    )
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"the reader ended after {lines[-1:]}: {done.stderr[-2000:]}"
    assert len(lines) == total
    wrong = ["\t".join(line) for line in lines if line[3] not in ("read", "refused")]
    assert not wrong, "\n".join(wrong)
    tally = Counter((line[0], line[3]) for line in lines)
    for suffix in suffixes:
        assert tally[suffix, "refused"] > 0
        assert tally[suffix, "read"] > 0 or suffix == ".mps.gz"  # its sum of all bytes tells every damage
