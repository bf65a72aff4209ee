"""Text in lines of limited width, safe for terminals.

Names come from users and their files. Escape sequences, line breaks, marks that change the direction of
writing and all other invisible characters become a question mark, so that no name can colour a terminal,
forge a line or hide a part of one.
"""

from __future__ import annotations

import re

from rich.cells import cell_len, chop_cells

HIDDEN = "?"
"""Replaces an invisible character."""
UNIT, GLUE = re.compile(r"(?<=\d) (?=[%s]\b|%)"), "\u00a0"
"""Keeps a number on the line of its unit."""
CUT = ".."
"""Marks the end of a shortened text."""


def harmless(text: str) -> str:
    """The text with visible characters and spaces only."""
    return text if text.isprintable() else "".join(c if c.isprintable() else HIDDEN for c in text)


def cells(text: str) -> int:
    """The width of a text on a terminal: some characters take two columns, some none."""
    return cell_len(text)


def cut(text: str, width: int) -> str:
    """The text, shortened to a width."""
    if cells(text) <= width:
        return text
    return "".join(chop_cells(text, max(width - len(CUT), 1))[:1]) + CUT[: max(width - 1, 0)]


def whole_words(words: str, width: int) -> str:
    """As many words, separated by two spaces, as fit; the first one may be shortened."""
    kept, *others = words.split("  ")
    for word in others:
        if cells(f"{kept}  {word}") > width:
            break
        kept = f"{kept}  {word}"
    return cut(kept, width)


def wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Lines of at most `width` columns: `first` begins the first line, `rest` the others."""
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
    """A labelled text: the label at the left, all lines of the text beside it."""
    return wrapped(text, width, f"{label:<{LABEL}}", " " * LABEL)


LABEL = 12
"""Width of the labels, including the space after them."""


def number(value: float | None, width: int = 12) -> str:
    """A number with six digits, or fewer if there is no room; a dash without a number."""
    if value is None or value != value or value in (float("inf"), float("-inf")):
        return "-"
    for digits in (6, 5, 4, 3, 2):
        text = f"{value + 0.0:.{digits}g}"
        if len(text) <= width:
            break
    return text


def count(amount: int, width: int = 11) -> str:
    """A count with commas, in thousands or millions if there is no room."""
    text = f"{amount:,}"
    for unit, name in ((1e3, "k"), (1e6, "M"), (1e9, "G")):
        if len(text) <= width:
            break
        text = f"{amount / unit:,.1f}{name}"
    return text
