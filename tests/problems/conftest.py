"""Look-alike data unless a test asks for the real files, whatever the surroundings say."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = os.environ.get("DOVETAIL_DATA")


@pytest.fixture(scope="module", autouse=True)
def _look_alike() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DOVETAIL_DATA", raising=False)
        yield


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the real files, named by DOVETAIL_DATA again; without one the test is skipped."""
    if not FOLDER or not Path(FOLDER).is_dir():
        pytest.skip("DOVETAIL_DATA names no folder")
    monkeypatch.setenv("DOVETAIL_DATA", FOLDER)
    return Path(FOLDER)
