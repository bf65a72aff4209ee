"""Look-alike data unless a test asks for a folder of files, whatever the surroundings say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def _look_alike() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DOVETAIL_DATA", raising=False)
        yield
