"""Strict mode: a failing part raises instead of being noted and passed over.

A solve must not end because one of its parts fails. A test must not pass because a failing part was passed
over. `DOVETAIL_STRICT=1` in the environment chooses the second; the test suite sets it. `run/failures.py` has
what a failure of a part is.
"""

from __future__ import annotations

import os

VARIABLE = "DOVETAIL_STRICT"


def strict() -> bool:
    """Whether faults of dovetail's own parts are raised; asked each time, so that tests may switch it."""
    return os.environ.get(VARIABLE, "") not in ("", "0")
