"""What somebody may have meant by a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MOST_COMPARED = 20_000
"""Names that are compared, a second at most: of more, those that begin or end alike."""
SHARED = 2
"""Characters at the beginning or the end that names have in common then."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message, " (did you mean 'cement'?)"; empty where nothing is near.

    >>> did_you_mean("cemnt", ["cement", "ash"])
    " (did you mean 'cement'?)"
    >>> did_you_mean("water", ["cement", "ash"])
    ''
    """
    names = list(known)
    if len(names) > MOST_COMPARED:
        begin, end = word[:SHARED].lower(), word[-SHARED:].lower()
        names = [name for name in names if name.lower().startswith(begin) or name.lower().endswith(end)]
    folded = {name.lower(): name for name in names[:MOST_COMPARED]}  # x and X are easily confused
    near = get_close_matches(word.lower(), folded, n=1)
    return f" (did you mean {folded[near[0]]!r}?)" if near else ""
