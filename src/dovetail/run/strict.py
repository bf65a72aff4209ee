"""Strict mode: a failing part raises instead of being noted and passed over.

A solve must not end because one of its parts fails. A test must not pass because a failing part was passed
over. `DOVETAIL_STRICT=1` in the environment chooses the second; the test suite sets it.
"""

from __future__ import annotations

import os

VARIABLE = "DOVETAIL_STRICT"


def strict() -> bool:
    """Whether faults of dovetail's own parts are raised; tests may switch it at any time."""
    return os.environ.get(VARIABLE, "") not in ("", "0")
