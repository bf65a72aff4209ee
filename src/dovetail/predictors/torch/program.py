"""A torch module as a program: what it does with one row, recorded as it is done.

The module itself is run, in its own dtype and with its hooks, on a row that has no numbers (`Traced`). So
what is recorded is what it computes for all inputs, hooks included; code that looks at numbers is refused.
One row is enough: rows that influence each other were refused when the predictor was added.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dovetail.core.deadline import require_time
from dovetail.core.errors import UnsupportedError
from dovetail.networks.program import Program, Recording
from dovetail.predictors.torch import traced_functions  # noqa: F401 - its handlers are entered as it is imported
from dovetail.predictors.torch.frozen_copy import as_table
from dovetail.predictors.torch.traced import Constants, Traced, as_traced

IMPORTS = 20.0
"""Of the time that mpmath takes to import, for the rest: 27 where compiled files are kept, 9 where not."""


def _import_dispatch() -> None:
    """Torch imports sympy and its own distributed tensors when it first meets a traced one.

    These imports take up to ten seconds on a busy machine, and no look at the clock interrupts them. The time
    of mpmath, a small part of them, tells how long the rest will take.
    """
    if "torch.distributed.tensor" in sys.modules or not torch.distributed.is_available():
        return
    begin = time.perf_counter()
    importlib.import_module("mpmath")
    require_time(IMPORTS * (time.perf_counter() - begin))
    importlib.import_module("torch.distributed.tensor")


def recorded_program(
    name: str, run: Callable[[Tensor], Any], features: int, dtype: torch.dtype, device: str
) -> Program:
    """What `run` does with one row; an `UnsupportedError` says what cannot be followed."""
    _import_dispatch()
    recording = Recording(features)
    row = Traced(torch.arange(features)[None], recording, dtype, torch.device(device))
    try:
        with torch.no_grad(), Constants(row):
            outputs = as_table(run(row), 1)
    except UnsupportedError as reason:
        raise UnsupportedError(f"{name} has no bound: {reason}") from reason
    except Exception as reason:
        raise UnsupportedError(
            f"{name} has no bound: it cannot be followed ({type(reason).__name__}: {reason})"
        ) from reason
    return recording.program(as_traced(outputs, row).flat.copy())
