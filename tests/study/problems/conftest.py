"""Look-alike data unless a test asks for a folder of files, whatever the surroundings say."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

GIVEN = os.environ.get("DOVETAIL_DATA")


@dataclass(frozen=True)
class Folder:
    """Where DOVETAIL_DATA points during one test."""

    path: Path
    real: bool
    """It holds the real files; otherwise it is empty, and the test writes files in their layout."""


@pytest.fixture(scope="module", autouse=True)
def _look_alike() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DOVETAIL_DATA", raising=False)
        yield


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """The folder that DOVETAIL_DATA names: the one given from outside, or an empty one."""
    real = bool(GIVEN) and Path(str(GIVEN)).is_dir()
    path = Path(str(GIVEN)) if real else tmp_path
    monkeypatch.setenv("DOVETAIL_DATA", str(path))
    return Folder(path, real)
