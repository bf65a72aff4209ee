"""Numbers formatted for readers: only the significant digits, and all numbers of one table column alike."""

from __future__ import annotations

import math
import unicodedata

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.report.gains import ROUNDING

MINUS, NOTHING = "\N{MINUS SIGN}", "\N{EN DASH}"
DIGITS = 4
"""Number of digits of the largest number of a column: enough to carry out a plan."""
WHOLE = 1e-6
"""Numbers nearer to an integer than the check's tolerance are shown as integers."""
LARGE = 1e7
"""Larger numbers are written with powers of ten, which are easier to read."""


def number(value: float | None, digits: int = 6) -> str:
    """A number with this many digits; a dash for None."""
    if value is None or not math.isfinite(value):
        return NOTHING if value is None or math.isnan(value) else f"{MINUS if value < 0 else ''}∞"
    if value == 0.0 or (1e-4 <= abs(value) < LARGE):
        value += 0.0  # never -0
        decimals = 0 if value == 0.0 else max(0, digits - 1 - math.floor(math.log10(abs(value))))
        text = f"{value:,.{decimals}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        text = f"{value:.{max(1, digits - 3)}g}"
    return text.replace("-", MINUS)


def numbers(values: FloatArray) -> list[str]:
    """Numbers of a column, with the same number of decimals; NaN is left empty."""
    shown = values[np.isfinite(values)]
    largest = float(np.max(np.abs(shown), initial=0.0))
    if largest >= LARGE:
        return ["" if math.isnan(value) else number(value, DIGITS) for value in values.tolist()]
    if bool(np.all(np.abs(shown - np.round(shown)) <= WHOLE)):
        decimals = 0
    else:
        decimals = DIGITS - 1 - math.floor(math.log10(largest))
        decimals = min(max(decimals, 1), DIGITS)
    return [_fixed(value, decimals) for value in values.tolist()]


def _fixed(value: float, decimals: int) -> str:
    if math.isnan(value):
        return ""
    if not math.isfinite(value):
        return number(value)
    if abs(value) <= WHOLE:
        return "0"
    text = f"{value:,.{decimals}f}"
    if float(text.replace(",", "")) == 0.0:
        text = f"{value:.0e}"
    return text.replace("-", MINUS)


def change(value: float, digits: int = 4) -> str:
    """A difference, with its sign."""
    return f"+{number(value, digits)}" if value > 0 else number(value, digits)


def seconds(value: float) -> str:
    """A time; below ten seconds with more digits."""
    if value < 0.0005:
        return "0 s"
    if value < 1.0:
        return f"{value:.3f} s" if value < 0.1 else f"{value:.2f} s"
    return f"{value:.1f} s" if value < 1000 else f"{value:,.0f} s"


def percent(share: float | None) -> str:
    """A fraction as a percentage."""
    if share is None or not math.isfinite(share):
        return NOTHING
    if share <= ROUNDING:
        return "0 %"
    if share < 1e-4:
        return "< 0.01 %"
    return f"{100 * share:.3g} %" if share < 9.995 else f"{share:,.0f} times"


LONGEST = 90
"""Largest number of characters of a name on a page: thirty names still fit on a screen."""
MARKS = 2
"""Largest number of accents on one letter; more would cover the lines above."""


def visible(text: str, longest: int = LONGEST) -> str:
    """`text` with control, direction and unassigned characters spelt out, and its middle left out if long."""
    whole = str(text)
    kept = whole if len(whole) <= 4 * longest else whole[: 2 * longest] + whole[-2 * longest :]
    shown = spelt_out(kept)
    if len(shown) <= longest and kept is whole:
        return shown
    return f"{shown[: longest - longest // 3 - 1]}…{shown[-(longest // 3) :]}"


def spelt_out(text: str) -> str:
    """All characters of `text`, invisible ones spelt out."""
    if text.isascii() and text.isprintable():
        return text
    shown = (c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)
    return _with_few_accents("".join(shown))


def _with_few_accents(text: str) -> str:
    out: list[str] = []
    run = 0
    for c in text:
        run = run + 1 if unicodedata.combining(c) or unicodedata.category(c) == "Me" else 0
        if run <= MARKS:
            out.append(c)
    return "".join(out)
