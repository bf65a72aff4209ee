"""Text of others on a terminal: names and messages from files hold whatever their author put there."""

from __future__ import annotations


def one_line(text: object) -> str:
    """The text without ends of lines, and with control and formatting characters spelt out."""
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode()
        for sign in " ".join(str(text).split())
    )
