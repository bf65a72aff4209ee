"""Text from users, as a page can show it: every character to be seen, and none that moves the others."""

from __future__ import annotations

import unicodedata

LONGEST = 90
"""Characters of a name on a page: enough to tell it by, and thirty of them still fit on a screen."""
MARKS = 2
"""Accents on one letter; more of them climb over the lines above."""


def visible(text: str, longest: int = LONGEST) -> str:
    """`text` with control, direction and unassigned characters spelt out, and its middle left out if long."""
    whole = str(text)
    kept = whole if len(whole) <= 4 * longest else whole[: 2 * longest] + whole[-2 * longest :]
    shown = spelt_out(kept)
    if len(shown) <= longest and kept is whole:
        return shown
    return f"{shown[: longest - longest // 3 - 1]}…{shown[-(longest // 3) :]}"


def spelt_out(text: str) -> str:
    """All of `text`, every character of it to be seen."""
    if text.isascii() and text.isprintable():
        return text
    return _with_few_marks("".join(c if c.isprintable() else _spelt(c) for c in text))


def _spelt(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def _with_few_marks(text: str) -> str:
    out: list[str] = []
    run = 0
    for c in text:
        run = run + 1 if unicodedata.combining(c) or unicodedata.category(c) == "Me" else 0
        if run <= MARKS:
            out.append(c)
    return "".join(out)
