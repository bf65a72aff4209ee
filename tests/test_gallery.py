"""The gallery: every source runs, and its page, notebook and pictures are of the source as it is."""

import json
import re
import runpy

import pytest
from matplotlib import pyplot as plt
from website import run_gallery
from website.run_gallery import LARGEST, PAGES, SOURCES, cells

from tests.conftest import FULL
from tests.programs import make_patient

GALLERY = sorted(SOURCES.glob("*.py"))
VERDICT = re.compile(r"\b(optimal|feasible|infeasible|no_solution)\b")


def enough(event):
    """A point and a bound: the programs print both."""
    if event.x is not None and event.bound is not None:
        event.stop()


def outputs(name):
    """What the cells of a kept page say."""
    said = re.findall(r"^```\{\.text \.output.*?\}\n(.*?)\n```$", page(name), flags=re.MULTILINE | re.DOTALL)
    return "\n".join(said)


def page(name):
    return (PAGES / f"{name}.md").read_text()


@pytest.mark.long
@pytest.mark.parametrize(
    "source",
    GALLERY if FULL else [SOURCES / "prices.py"],  # a second, others up to six
    ids=lambda source: source.stem,
)
def test_it_runs(source, monkeypatch, tmp_path):
    """To the first point and bound of each solve; at full volume to its end, with the proof of the page."""
    monkeypatch.chdir(tmp_path)
    if FULL:
        said = "\n".join(cell.said for cell in run_gallery.run(source))
        assert VERDICT.search(said)
        assert "optimal" in said or "optimal" not in outputs(source.stem)  # what the page calls proved
    else:
        monkeypatch.setenv("MPLBACKEND", "Agg")
        make_patient(monkeypatch, callback=enough)
        runpy.run_path(str(source), run_name="__main__")
        plt.close("all")


@pytest.mark.parametrize("source", GALLERY, ids=lambda source: source.stem)
def test_its_page_is_of_the_source_as_it_is(source):
    """Otherwise: make gallery."""
    text, notebook = page(source.stem), json.loads((PAGES / f"{source.stem}.ipynb").read_text())
    kept = ["".join(cell["source"]) for cell in notebook["cells"]]
    assert kept == [cell.text for cell in cells(source)]
    for cell in cells(source):
        assert (cell.text in text) != (cell.setup or "plt.subplots(" in cell.text)
    pictures = re.findall(r"^!\[.*\]\((.*\.svg)\)$", text, flags=re.MULTILINE)
    assert pictures
    for picture in pictures:
        assert 0 < (PAGES / picture).stat().st_size <= LARGEST


def test_all_are_in_the_index():
    index = page("index")
    assert all(f"({source.stem}.md)" in index for source in GALLERY)
    assert {file.stem for file in PAGES.glob("*.md")} == {source.stem for source in GALLERY} | {"index"}


def test_cells_are_read_as_they_are_written(tmp_path):
    source = tmp_path / "small.py"
    source.write_text("# %% [markdown]\n# # Title\n#\n# Text.\n\n# %%\nx = 2\nx + 1\n\n# %%\nx = None\nx\n")
    first, second, third = run_gallery.run(source)
    assert (first.kind, first.text) == ("markdown", "# Title\n\nText.")
    assert (second.kind, second.said) == ("code", "3")
    assert third.said == ""
    text, pictures = run_gallery.as_page("small", [first, second, third])
    assert "```python\nx = 2\nx + 1\n```" in text and not pictures


def test_a_heavy_picture_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(run_gallery, "LARGEST", 10)
    source = tmp_path / "heavy.py"
    source.write_text("# %%\nfrom matplotlib import pyplot as plt\nplt.plot([1, 2])\nNone\n")
    with pytest.raises(SystemExit, match="draw less"):
        run_gallery.run(source)
