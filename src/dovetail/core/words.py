"""Words for messages: amounts, lists, suggestions for misspelt names; and tables for notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from html import escape
from inspect import Parameter, signature
from typing import ParamSpec, TypeVar


def several(amount: int, one: str, more: str = "") -> str:
    """ "1 round", "2,000 rounds"."""
    return f"{amount:,} {one if amount == 1 else more or one + 's'}"


def listed(items: Sequence[str], most: int = 3) -> str:
    """The first few items, and the number of the others.

    >>> listed(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    shown = ", ".join(items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most:,} more"


ELSEWHERE = {
    "tee": "log",
    "verbose": "log",
    "outputflag": "log",
    "threads": "n_jobs",
    "num_threads": "n_jobs",
    "n_workers": "n_jobs",
    "workers": "n_jobs",
    "processes": "n_jobs",
    "random_state": "seed",
    "warm_start": "start",
    "warmstart": "start",
    "initial": "start",
    "maxtime": "time_limit",
    "timeout": "time_limit",
    "solver": "method",
    "timelimit": "time_limit",
    "mipgap": "gap",
    "mip_gap": "gap",
    "mip_rel_gap": "gap",
}
"""Option names of other solvers, and dovetail's names for the same options."""
MOST_WORDS = 20_000
"""Maximal number of words to compare, so that an error does not take seconds."""

P = ParamSpec("P")
R = TypeVar("R")


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """ "; did you mean 'cement'?", or an empty text if no known word is similar.

    >>> did_you_mean("timelimit", ["time_limit", "seed"])
    "; did you mean 'time_limit'?"
    >>> did_you_mean("banana", ["time_limit", "seed"])
    ''
    """
    from difflib import get_close_matches  # used only for error messages
    from itertools import islice

    words = {name.casefold(): name for name in islice(known, MOST_WORDS)}
    elsewhere = ELSEWHERE.get(str(word).casefold())
    if elsewhere in words:
        return f"; did you mean {elsewhere!r}?"
    found = get_close_matches(str(word).casefold(), words, n=1, cutoff=0.6)
    return f"; did you mean {words[found[0]]!r}?" if found else ""


def with_suggestions(function: Callable[P, R]) -> Callable[P, R]:
    """The function with a suggestion in its `TypeError` about an unknown keyword."""
    known = [
        name
        for name, parameter in signature(function).parameters.items()
        if parameter.kind in (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    ]

    @wraps(function)
    def suggesting(*args: P.args, **kwargs: P.kwargs) -> R:
        for word in kwargs:
            if word not in known:
                require = f"{function.__name__}() got an unexpected keyword argument {word!r}"
                raise TypeError(f"{require}{did_you_mean(word, known)}")
        return function(*args, **kwargs)

    return suggesting


def facts(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """A table of names and texts about one object.

    >>> facts("Result", [("x<1>", "2")])
    '<table><caption>Result</caption><tr><th>x&lt;1&gt;</th><td>2</td></tr></table>'
    """
    lines = "".join(f"<tr><th>{escape(what)}</th><td>{escape(said)}</td></tr>" for what, said in rows)
    return f"<table><caption>{escape(title)}</caption>{lines}</table>"


def grid(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a line for each of several objects."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    lines = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption>{escape(title)}</caption><tr>{head}</tr>{lines}</table>"
