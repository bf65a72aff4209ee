"""Text on lines of limited width; what names contain does no harm there.

Names come from users and their files. Escape sequences, line breaks, marks that turn the direction of
writing and all other invisible characters become a question mark, so that no name can colour a terminal,
forge a line or hide a part of one.
"""

from __future__ import annotations

import re

from rich.cells import cell_len, chop_cells

HIDDEN = "?"
"""In the place of a character that is not to be seen."""
UNIT, GLUE = re.compile(r"(?<=\d) (?=[%s]\b|%)"), "\u00a0"
"""A number stays on the line of its unit."""
CUT = ".."
"""At the end of what was too long."""


def harmless(text: str) -> str:
    """The text with nothing in it but characters that can be seen, and spaces."""
    return text if text.isprintable() else "".join(c if c.isprintable() else HIDDEN for c in text)


def cells(text: str) -> int:
    """Columns that a terminal takes for it: some characters take two, some none."""
    return cell_len(text)


def cut(text: str, width: int) -> str:
    """The text, or its beginning where it has no room."""
    if cells(text) <= width:
        return text
    return "".join(chop_cells(text, max(width - len(CUT), 1))[:1]) + CUT[: max(width - 1, 0)]


def whole_words(words: str, width: int) -> str:
    """As many of the words, two spaces between them, as there is room for; the first at least, cut."""
    kept, *others = words.split("  ")
    for word in others:
        if cells(f"{kept}  {word}") > width:
            break
        kept = f"{kept}  {word}"
    return cut(kept, width)


def wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Lines of at most `width` columns: `first` leads the first one, `rest` the others."""
    lines, line, empty = list[str](), first, True
    for word in UNIT.sub(GLUE, harmless(text)).split(" "):
        joined = line + word if empty else f"{line} {word}"
        if not empty and cells(joined) > width:
            lines.append(line)
            joined = rest + word
        while cells(joined) > width:  # a word that is longer than a line, such as a path
            lead = first if not lines else rest
            head, *more = chop_cells(joined, max(width, len(lead) + 2))
            lines.append(head)
            joined = rest + "".join(more)
        line, empty = joined, False
    return [made.replace(GLUE, " ") for made in (*lines, line.rstrip())]


def fact(label: str, text: str, width: int) -> list[str]:
    """A labelled line: the label at the left, the text beside it, also where it takes several lines."""
    return wrapped(text, width, f"{label:<{LABEL}}", " " * LABEL)


LABEL = 12
"""Columns of the labels, the space after them included."""


def number(value: float | None, width: int = 12) -> str:
    """A number with six digits, or as many as there is room for; a dash where there is none."""
    if value is None or value != value or value in (float("inf"), float("-inf")):
        return "-"
    for digits in (6, 5, 4, 3, 2):
        text = f"{value + 0.0:.{digits}g}"
        if len(text) <= width:
            break
    return text


def count(amount: int, width: int = 11) -> str:
    """A count with commas; in thousands or millions where there is no room for all of it."""
    text = f"{amount:,}"
    for unit, name in ((1e3, "k"), (1e6, "M"), (1e9, "G")):
        if len(text) <= width:
            break
        text = f"{amount / unit:,.1f}{name}"
    return text
