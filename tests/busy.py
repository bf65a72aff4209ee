"""Run a command with busy processes beside it: `python -m tests.busy 4 python -m pytest`."""

from __future__ import annotations

import os
import subprocess
import sys

BUSY = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    for _ in range(10**6):
        pass
"""
"""It ends with the process that started it, however that ends."""


def main(count: int, command: list[str]) -> int:
    """The exit code of the command."""
    beside = [subprocess.Popen([sys.executable, "-c", BUSY, str(os.getpid())]) for _ in range(count)]
    try:
        return subprocess.run(command, check=False).returncode
    finally:
        for process in beside:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
