"""A process of its own that reads damaged files, under a limit of memory: what it cannot survive shows.

    python -m tests.robustness.reader SUFFIX FIRST COUNT [SUFFIX FIRST COUNT ...]

One line per file on stdout: its kind and seed, the damage, and what became of it. Kind and seed are written
before the file is read, so that a crash or a hang has a name.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import dovetail as dt
from tests.robustness.damage import damaged

MEMORY = 4 << 30
"""Bytes a process may take beyond what it has when all libraries are loaded."""
SHORT = ("MemoryError", "allocate", "bad_alloc")
"""Words of an error that came only from the limit: the reader itself did not look."""


def main(*wanted: str) -> None:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "warm.onnx").write_bytes(damaged(".onnx", 0, folder)[0])
        dt.load_predictor(Path(folder, "warm.onnx"))  # so that all libraries are there
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
        for suffix, first, count in zip(wanted[::3], wanted[1::3], wanted[2::3], strict=True):
            for seed in range(int(first), int(first) + int(count)):
                print(suffix, seed, sep="\t", end="\t", flush=True)
                print(*tried(suffix, seed, folder), sep="\t", flush=True)


def tried(suffix: str, seed: int, folder: str) -> tuple[str, str]:
    """The damage of one file, and what became of it."""
    original, damage = damaged(suffix, seed, folder)
    path = Path(folder) / f"damaged{suffix}"
    path.write_bytes(damage.content)
    return damage.kind, outcome(path, suffix, original, damage.content)


def outcome(path: Path, suffix: str, original: bytes, content: bytes) -> str:
    """ "read", "refused", or what should not have happened."""
    try:
        read(path, suffix)
    except dt.DovetailError as error:
        said = str(error)
        if any(word in said for word in SHORT):
            return f"SHORT OF MEMORY: {said[:200]}"
        return "refused"
    except BaseException as error:
        return f"UNTYPED {type(error).__name__}: {str(error)[:200]!r}"
    if loses_its_end(suffix, original, content):
        return "TAKEN THOUGH CUT SHORT"
    return "read"


def read(path: Path, suffix: str) -> None:
    if suffix == ".json":
        content = path.read_bytes()
        try:
            text = content.decode()
        except UnicodeDecodeError:
            text = content.decode("latin-1")
        dt.Result.from_json(text).to_json()
    elif suffix == ".onnx":
        predictor = dt.load_predictor(path)
        predictor.predict(np.zeros((5, 4)))
    else:
        dt.read(path)


def loses_its_end(suffix: str, original: bytes, content: bytes) -> bool:
    """Whether a file is another one cut short by more than blanks."""
    if suffix == ".onnx":  # an end without weights or nodes may be lost: a note of who made it, say
        return False
    return original.startswith(content) and len(content) < len(original.rstrip())


if __name__ == "__main__":
    main(*sys.argv[1:])
