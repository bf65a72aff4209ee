"""Functions that sweeps in tests call: processes import them from here."""

import os
import signal
import sys
from pathlib import Path

import torch

from tests.small import knapsack


def plant(sense="min", trouble="", mended=""):
    """A small problem, or something that goes wrong, unless the file `mended` is there."""
    if trouble and not (mended and Path(mended).exists()):
        TROUBLES[trouble]()
    assert torch.get_num_threads() == 1
    return knapsack(sense), {"time_limit": 20.0}


def _fail():
    raise ValueError("no such plant")


TROUBLES = {
    "raise": _fail,
    "leave": lambda: sys.exit(4),
    "exit": lambda: os._exit(3),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
}


def nothing(a, b=0):
    return None


def pair(a):
    return knapsack(), a
