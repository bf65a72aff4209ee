"""Tables fit the terminal: as tables where there is room, else row by row in words."""

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from dovetail_study.experiment import NOTHING, ResultTable

TABLE = ResultTable(
    "made_up",
    "A title",
    ["network", "n", "seconds", "what came of it"],
    [["2x16", "25", "0.91 ± 0.21", "holds [here]"], ["4x32", "50", NOTHING, ""]],
    "Means over seeds.",
)


def shown(width):
    stream = io.StringIO()
    TABLE.show(Console(file=stream, width=width, markup=False, highlight=False))
    return stream.getvalue()


@pytest.mark.parametrize("width", [30, 52, 53, 120])
def test_no_line_is_wider_than_the_terminal(width):
    lines = shown(width).splitlines()
    assert all(cell_len(line.rstrip()) <= width for line in lines)
    assert "Means over seeds." in shown(width)
    assert "…" not in shown(width)  # nothing is cut off


def test_with_room_it_is_a_table_and_without_in_words():
    assert "┃" in shown(120)
    narrow = " ".join(shown(30).split())
    assert "- network 2x16; n 25; seconds 0.91 ± 0.21; what came of it holds [here]" in narrow
    assert "- network 4x32; n 50" in narrow and NOTHING not in narrow
