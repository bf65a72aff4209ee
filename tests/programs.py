"""Programs that readers run, run by tests: on machines of any load, and without processes of their own."""

from functools import wraps

import pytest

import dovetail as dt
from dovetail.sweeping.sweep import solved

LEAST = 1.0
"""Seconds: a program with a shorter limit shows what a limit does."""
PATIENCE = 30.0
"""Seconds for a solve that has a limit of its own: each needs one or two on a machine that is not busy."""


def make_patient(patch: pytest.MonkeyPatch, **always: object) -> None:
    """Limits of seconds are for readers: a busy machine may need more of them. `always` has more options."""
    solve = dt.solve

    @wraps(solve)
    def patient(*given, time_limit=60.0, **options):
        limit = time_limit if time_limit < LEAST else max(time_limit, PATIENCE)
        return solve(*given, time_limit=limit, **options | always)

    patch.setattr(dt, "solve", patient)


def sweep_here(patch: pytest.MonkeyPatch) -> None:
    """Cases of a sweep in this process: others import torch for seconds (tests/sweeping starts some)."""

    def rows(name, build, cases, jobs, keep):
        return (solved(name, build, case, keep) for case in cases)

    patch.setattr("dovetail.sweeping.sweep.solved_cases", rows)
