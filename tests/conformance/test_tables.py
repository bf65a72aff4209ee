"""Every part of every table is there: here, where the libraries of most are loaded for other tests anyway."""

import pytest

from tests.core.test_table import TABLES

OURS = {table.family: tuple(table.values()) for table in TABLES}
"""Before any test registers some of its own."""


@pytest.mark.parametrize("family", OURS)
def test_every_part_is_where_its_line_says(family, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    for part in OURS[family]:
        assert part.load() is not None
        assert part.text and "\n" not in part.text
