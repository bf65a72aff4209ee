"""Run the gallery: python -m website.run_gallery [NAME ...]

The sources are programs in cells (examples/gallery/*.py). Each runs from top to bottom. Text, output and
pictures are written to docs/gallery: NAME.md with its pictures for the site, and NAME.ipynb.
"""

import ast
import io
import json
import re
import sys
import warnings
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "examples" / "gallery"
PAGES = ROOT / "docs" / "gallery"
LARGEST = 60_000
"""Largest size of a picture in bytes, so that pages load quickly."""
INK = "#7d848c"
"""Colour of text and axes, readable on white and on dark pages."""
STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "dovetail", "figure.facecolor": "none", "axes.facecolor": "none",
    "savefig.facecolor": "none", "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK,
    "xtick.color": INK, "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False,
    "legend.frameon": False, "font.size": 10, "axes.titlesize": 10, "figure.constrained_layout.use": True,
}  # fmt: skip


@dataclass
class Cell:
    """Text or code, with its output."""

    kind: str
    """"markdown" or "code"."""
    text: str
    said: str = ""
    pictures: list[bytes] = field(default_factory=list)
    setup: bool = False
    """Whether the page leaves the code out."""


def cells(source: Path) -> list[Cell]:
    """A program in cells: `# %% [markdown]` and a comment, `# %%` and code, `# %% [setup]` and code.

    The page leaves out the code of setup cells.
    """
    found = []
    for part in re.split(r"^# %%", source.read_text(), flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        if "[markdown]" in head:
            text = re.sub(r"^# ?", "", body, flags=re.MULTILINE)
            found.append(Cell("markdown", text.strip()))
        else:
            found.append(Cell("code", body.strip(), setup="[setup]" in head))
    return found


def run(source: Path) -> list[Cell]:
    """All cells in one namespace, from top to bottom, with their output and their pictures."""
    import matplotlib

    matplotlib.use("Agg")
    warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")  # `plt.show()` has no window here
    matplotlib.rcParams.update(STYLE)
    names = {"__name__": "__main__", "__file__": str(source)}
    found = cells(source)
    for cell in found:
        if cell.kind == "code":
            with redirect_stdout(io.StringIO()) as said:
                _execute(cell.text, names, source.name)
            cell.said = said.getvalue().strip("\n")
            cell.pictures = _drawn()
    return found


def _execute(code: str, names: dict[str, object], title: str) -> None:
    """Run the code and print the value of the last line, as a notebook does."""
    tree = ast.parse(code, title)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, title, "exec"), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), title, "eval"), names)
        if value is not None:
            print(value)


def _drawn() -> list[bytes]:
    """Every open figure of matplotlib as reproducible SVG."""
    from matplotlib import pyplot as plt

    pictures = []
    for number in plt.get_fignums():
        file = io.BytesIO()
        plt.figure(number).savefig(file, format="svg", metadata={"Date": None, "Creator": None})
        pictures.append(file.getvalue())
        if len(pictures[-1]) > LARGEST:
            raise SystemExit(f"a picture has {len(pictures[-1])} bytes; draw less than {LARGEST}")
    plt.close("all")
    return pictures


def as_page(name: str, found: list[Cell]) -> tuple[str, dict[str, bytes]]:
    """The page of the site, and its pictures by file name.

    The page leaves out the code of cells that draw and of setup cells, and shows their pictures and output.
    """
    parts, pictures = [], {}
    for cell in found:
        if cell.kind == "markdown":
            parts.append(cell.text)
            continue
        if not (cell.pictures or cell.setup):
            parts.append(f"```python\n{cell.text}\n```")
        if cell.said:
            parts.append(f'```{{.text .output title="Output"}}\n{cell.said}\n```')
        for picture in cell.pictures:
            file = f"{name}_{len(pictures) + 1}.svg"
            pictures[file] = picture
            parts.append(f"![{_caption(found, cell)}]({file})")
    where = f"examples/gallery/{name}.py"
    parts.append(f"---\n\nThe whole program: [{where}](../../{where}), also as a [notebook]({name}.ipynb).")
    return "\n\n".join(parts) + "\n", pictures


def _caption(found: list[Cell], cell: Cell) -> str:
    """Alternative text of a picture: the first words of the text after it."""
    after = [other.text for other in found[found.index(cell) + 1 :] if other.kind == "markdown"]
    return re.sub(r"[\[\]*`#\n]", " ", after[0])[:50].strip() if after else "picture"


def as_notebook(found: list[Cell]) -> str:
    """The same as a notebook of format 4.5."""
    listed = []
    for number, cell in enumerate(found):
        entry = {"id": f"cell-{number}", "metadata": {}, "source": cell.text.splitlines(keepends=True)}
        if cell.kind == "markdown":
            listed.append({"cell_type": "markdown", **entry})
            continue
        outputs = []
        if cell.said:
            text = (cell.said + "\n").splitlines(keepends=True)
            outputs.append({"output_type": "stream", "name": "stdout", "text": text})
        outputs += [
            {"output_type": "display_data", "metadata": {}, "data": {"image/svg+xml": picture.decode()}}
            for picture in cell.pictures
        ]
        listed.append({"cell_type": "code", "execution_count": None, "outputs": outputs, **entry})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {"cells": listed, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1) + "\n"


def main(names: list[str]) -> None:
    """Run the sources that are named, or all, and write their pages."""
    for source in sorted(SOURCES.glob("*.py")):
        name = source.stem
        if names and name not in names:
            continue
        found = run(source)
        page, pictures = as_page(name, found)
        for old in PAGES.glob(f"{name}_*.svg"):
            old.unlink()
        (PAGES / f"{name}.md").write_text(page)
        (PAGES / f"{name}.ipynb").write_text(as_notebook(found))
        for file, picture in pictures.items():
            (PAGES / file).write_bytes(picture)
        print(f"{name}: {len(pictures)} pictures, {sum(map(len, pictures.values())) // 1000} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
