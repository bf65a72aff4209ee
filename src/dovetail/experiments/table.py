"""A table that prints itself to the terminal and writes itself as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable

from dovetail.experiments.run import Record


@dataclass
class Table:
    """What was measured, and in a sentence or two how to read it."""

    name: str
    title: str
    header: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    reading: str = ""
    records: Sequence[Record] = ()
    """The lines of the results file its numbers come from."""

    def show(self, console: Console) -> None:
        """Print it."""
        shown = RichTable(title=self.title, title_justify="left")
        for i, text in enumerate(self.header):
            shown.add_column(text, justify="left" if i == 0 else "right")
        for row in self.rows:
            shown.add_row(*row)
        console.print(shown)
        if self.reading:
            console.print(self.reading + "\n", highlight=False)

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
