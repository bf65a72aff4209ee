"""Small tables for notebooks. Names come from users, so everything is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def facts(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """What is known of one thing: a line of what and how much each.

    >>> facts("Result", [("x<1>", "2")])
    '<table><caption>Result</caption><tr><th>x&lt;1&gt;</th><td>2</td></tr></table>'
    """
    lines = "".join(f"<tr><th>{escape(what)}</th><td>{escape(said)}</td></tr>" for what, said in rows)
    return f"<table><caption>{escape(title)}</caption>{lines}</table>"


def grid(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Several things of one kind, a line for each."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    lines = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption>{escape(title)}</caption><tr>{head}</tr>{lines}</table>"
