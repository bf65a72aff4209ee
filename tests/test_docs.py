"""What README, docs and docstrings say is run: their programs, their commands, their links."""

import doctest
import re
import textwrap
from pathlib import Path

import pytest

import dovetail as dt
from tests.conftest import FULL
from tests.core.test_table import TABLES
from tests.programs import make_patient, sweep_here

ROOT = Path(__file__).parent.parent
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), *GUIDES]
"""The pages of the gallery are made by running programs: tests/test_gallery.py looks at them."""
LONG = {"predictors.md", "quadratic.md", "scale.md", "trees.md"}
"""Pages whose programs take seconds; those of the README, the tour and the guides are run every time."""
NAMES = sorted(dt._PUBLIC)


def programs(page):
    """Those in tabs too, which stand in a column of their own."""
    found = re.findall(r"^( *)```python\n(.*?)^ *```", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(program) for _, program in found]


@pytest.fixture
def as_a_reader(monkeypatch):
    """What a program registers is gone after it, and no limit is too short for a busy machine."""
    for table in TABLES:
        monkeypatch.setattr(table, "_parts", dict(table._parts))
    make_patient(monkeypatch)
    if not FULL:
        sweep_here(monkeypatch)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if FULL or page.name not in LONG], ids=lambda page: page.name
)
@pytest.mark.usefixtures("as_a_reader")
def test_programs_run(page, tmp_path, monkeypatch, capsys):
    """Each with names of its own; in this process, where their libraries are imported already."""
    monkeypatch.chdir(tmp_path)
    for program in programs(page):
        exec(compile(program, page.name, "exec"), {"__name__": "__main__"})
        said = capsys.readouterr().out
        if page.name == "README.md" and "dt.Mip(" in program:
            assert said.splitlines()[-1].startswith(("feasible", "optimal"))


def test_the_readme_has_a_short_example():
    program = next(program for program in programs(ROOT / "README.md") if "dt.Mip(" in program)
    statements = [line for line in program.splitlines() if line.strip() and not line.startswith("import")]
    assert len(statements) <= 15


def test_make_targets_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for page in PAGES:
        named = re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(), flags=re.MULTILINE)
        assert set(named) <= targets, page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert (page.parent / target).exists(), target


def anchors(page):
    """Of the headings of a page, as the site has them, and those that it states itself."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*?)\s*$", text, flags=re.MULTILINE)
    slugs = {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", line).strip().lower()) for line in headings}
    return slugs | set(re.findall(r'(?:id="|\{ ?#)([\w.-]+)', text))


def test_anchors_are_there():
    """`make docs` and tests/test_site.py build the whole site; this needs no build."""
    for page in PAGES:
        for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
            there = page.parent / target if target else page
            assert there.name == "api.md" or anchor in anchors(there), f"{page.name}: {target}#{anchor}"


def test_every_page_is_in_the_menu_of_the_site():
    menu, docs = (ROOT / "mkdocs.yml").read_text(), ROOT / "docs"
    assert [
        page.name for page in (*docs.glob("*.md"), *GUIDES) if str(page.relative_to(docs)) not in menu
    ] == []


def test_options_and_files_named_in_backticks_exist():
    for page in PAGES:
        for name in re.findall(r"`dt\.(\w+)", page.read_text()):
            assert hasattr(dt, name), f"{page.name}: dt.{name}"
        for path in re.findall(r"`((?:src|docs|benchmarks|tests|examples)/[\w./]+)`", page.read_text()):
            assert (ROOT / path).exists(), f"{page.name}: {path}"


def imported_folders(folder):
    """What the files of a folder import: of dovetail by the name of the folder."""
    place = ROOT / "src" / ("" if folder.startswith("dovetail_") else "dovetail") / folder
    text = "\n".join(file.read_text() for file in place.rglob("*.py"))
    return set(re.findall(r"(?:from|import) (?:dovetail\.)?(\w+)", text))


def test_the_architecture_page_shows_the_house_as_it_is():
    page = (ROOT / "docs" / "architecture.md").read_text()
    folders = {file.parent.name for file in (ROOT / "src" / "dovetail").glob("*/__init__.py")}
    assert folders <= set(re.findall(r"^\| `(\w+)/` \|", page, flags=re.MULTILINE))
    arrows = re.findall(r"^    (\w+) --> (\w+)$", page, flags=re.MULTILINE)
    assert folders <= {name for arrow in arrows for name in arrow}
    for one, other in arrows:
        assert other in imported_folders(one), f"docs/architecture.md: {one} does not import {other}"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("as_a_reader")
def test_every_public_name_has_an_example_that_runs(name):
    text = getattr(dt, name).__doc__
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert example.examples, f"dovetail.{name} has no example in its docstring"
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=said.append)
    assert not said, "".join(said)
