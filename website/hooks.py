"""Hooks of the site: pages from outside docs/, links to them, flowcharts.

CONTRIBUTING.md, CHANGELOG.md and examples/README.md are pages of the site too. A link in docs/ that leaves
the folder is turned to the page; a link without a page is an error.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from website.flowchart import drawn

ROOT = Path(__file__).parent.parent
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/README.md": "examples.md",
}
"""Place on the site of each page from outside docs/."""
PLACES = {place: source for source, place in PAGES.items()}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/, and every program of examples/ as a file."""
    for source, place in PAGES.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text()))
    for program in sorted((ROOT / "examples").rglob("*.py")):
        place = program.relative_to(ROOT).as_posix()
        files.append(File.generated(config, place, content=program.read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links of the repository into links of the site; draw flowcharts."""
    place = page.file.src_uri
    if place.startswith("benchmarks/"):
        page.meta["hide"] = ["toc"]  # their tables are wide
    folder = posixpath.dirname(PLACES.get(place, f"docs/{place}"))

    def turned(match: re.Match[str]) -> str:
        target, anchor = match[2], match[3] or ""
        full = posixpath.normpath(posixpath.join(folder, target))
        if not (ROOT / full).exists():
            return match[0]  # mkdocs names it, where it is a link
        found = PAGES.get(full, full.removeprefix("docs/"))
        return f"{match[1]}({posixpath.relpath(found, posixpath.dirname(place) or '.')}{anchor})"

    markdown = re.sub(r"(\])\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)", turned, markdown)
    return re.sub(r"```mermaid\n(.*?)```", lambda match: drawn(match[1]), markdown, flags=re.DOTALL)
