"""Figures: what is not there is a dash, never a zero; many bars do not run into each other."""

import math
import re
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from dovetail_study import EXPERIMENTS
from dovetail_study.bench import experiment_named
from dovetail_study.figures import CROWDED, Bars, Drawing, HeatMap, LinesPanel, save
from dovetail_study.ledger import Ledger
from tests.conftest import sample, volume

DOCS = Path(__file__).parent.parent.parent / "docs"


def drawn(panel, folder):
    """The text of the figure as SVG."""
    _, svg = save(Drawing("a figure", [panel]), folder, "figure")
    return svg.read_text()


def test_values_that_are_missing_are_dashes(tmp_path):
    bars = Bars("bars", "y", ["a", "b"], {"one": [2.5, math.nan]})
    heat = HeatMap("heat", "x", "y", ["c"], ["r", "s"], [[3.25], [math.nan]], "unit", (0, 5))
    for panel, shown in ((bars, "2.5"), (heat, "3.2")):
        text = re.findall(r"<text[^>]*>([^<]*)</text>", drawn(panel, tmp_path))
        assert shown in text
        assert "–" in text


def test_lines_leave_out_what_is_missing(tmp_path):
    lines = LinesPanel(
        "lines", "x", "y", {"known": [(1.0, 2.0), (2.0, math.nan)], "nothing": [(1.0, math.nan)]}
    )
    text = drawn(lines, tmp_path)
    assert "known" in text
    assert "nothing" not in text


@pytest.mark.parametrize("log_y", sample([True, False]))
def test_numbers_over_many_bars_stand_upright(tmp_path, log_y):
    few = Bars("few", "y", ["a"], {str(k): [123.0] for k in range(CROWDED)}, log_y=log_y)
    many = Bars("many", "y", ["a"], {str(k): [123.0] for k in range(CROWDED + 1)}, log_y=log_y)
    assert not re.search(r"rotate\(-90[^>]*>123<", drawn(few, tmp_path))
    assert re.search(r"rotate\(-90[^>]*>123<", drawn(many, tmp_path))


@volume("the page of a bench shows the figure that was drawn: tests/study/test_bench.py")
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_bench_shows_something(name, tmp_path):
    """The published one: how much a quick one finds in its short time is the machine's business."""
    rows = Ledger.open(DOCS, any_version=True).of(name)
    png, svg = save(experiment_named(name).draw(rows), tmp_path, name)
    image = matplotlib.image.imread(png)[..., :3]
    colourful = np.ptp(image, axis=2) > 0.15  # neither paper nor ink
    assert colourful.mean() > 2e-4
    assert svg.read_text().count("<text") > 20
