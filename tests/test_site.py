"""The documentation site is built as `make docs` does, strictly, and needs nothing from elsewhere."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from website.flowchart import drawn

import dovetail as dt
from tests.conftest import FULL

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


class Loaded(HTMLParser):
    """What a browser fetches to show a page, links that somebody clicks left out."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag in ("script", "img", "iframe", "source", "image"):
            self.found += [given.get("src"), given.get("href")]
        if tag == "link" and given.get("rel") not in ("canonical", "next", "prev"):
            self.found.append(given.get("href"))


@pytest.mark.long
@pytest.mark.skipif(not FULL, reason="volume: `make docs` does it; test_docs.py has the links")
def test_it_is_built_and_loads_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    assert (site / "search" / "search_index.js").exists()  # the search of pages that are opened as files
    for page in pages:
        reader = Loaded()
        text = page.read_text()
        reader.feed(text)
        away = [one for one in reader.found if one and re.match(r"(https?:)?//", one)]
        assert not away, f"{page.relative_to(site)}: {away}"
        assert 'class="mermaid"' not in text  # the theme would fetch a script for it


def test_every_public_name_is_in_the_reference():
    page = (ROOT / "docs" / "api.md").read_text()
    listed = {line.rpartition(".")[2] for line in page.splitlines() if line.startswith("::: ")}
    assert listed == set(dt._PUBLIC)


def test_flowcharts_have_every_word_once_and_point_down():
    picture = drawn("flowchart TD\n    top --> middle\n    middle --> low\n    top --> low\n")
    height = {
        word: float(y) for y, word in re.findall(r'y="([\d.]+)" text-anchor="middle"[^>]*>(\w+)<', picture)
    }
    assert height["top"] < height["middle"] < height["low"]
    assert picture.count('<path class="arrow"') == 3
