"""A table that prints itself to the terminal and writes itself as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable

from dovetail_study.run import Record

NOTHING = "\u2013"
"""What cells without a number hold."""


@dataclass
class ResultTable:
    """What was measured, and in a sentence or two how to read it."""

    name: str
    title: str
    header: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    reading: str = ""
    records: Sequence[Record] = ()
    """The lines of the results file its numbers come from."""

    def show(self, console: Console) -> None:
        """Print it; where the terminal is too narrow for its columns, row by row with their names."""
        if self._width > console.width:
            console.print(f"\n{self.title}")
            for record in self._records():
                console.print(fill(record, console.width, initial_indent="- ", subsequent_indent="  "))
        else:
            shown = RichTable(title=self.title, title_justify="left")
            for i, text in enumerate(self.header):
                shown.add_column(text, justify="left" if i == 0 else "right")
            for row in self.rows:
                shown.add_row(*row)
            console.print(shown)
        if self.reading:
            console.print(f"{self.reading}\n")

    @property
    def _width(self) -> int:
        """Columns of a terminal that show all of it: cells with a space at both sides, lines between."""
        cells = zip(self.header, *self.rows, strict=True)
        return 1 + sum(3 + max(map(cell_len, column)) for column in cells)

    def _records(self) -> Iterator[str]:
        """Each row in words; what is empty is left out."""
        for row in self.rows:
            pairs = zip(self.header, row, strict=True)
            yield "; ".join(f"{name} {cell}" for name, cell in pairs if cell not in ("", NOTHING))

    def markdown(self, level: int = 2, caption: str = "") -> str:
        """The table as Markdown, under a heading of that level."""
        lines = [
            f"{'#' * level} {self.title}",
            "",
            markdown_row(self.header),
            markdown_row(["---", *["---:"] * (len(self.header) - 1)]),
        ]
        lines += [markdown_row(row) for row in self.rows]
        for paragraph in (self.reading, caption):
            if paragraph:
                lines += ["", paragraph]
        return "\n".join([*lines, ""])

    def write(self, folder: Path) -> None:
        """Write it to a file of its own."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.name}.md").write_text(self.markdown(), encoding="utf-8")


def markdown_row(cells: Sequence[str]) -> str:
    """One row of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table of words, which may have the sign that stands between cells."""
    told = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return [*map(markdown_row, (header, ["---"] * len(header), *told))]
