"""A word that nobody knows, and the one that was probably meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Parameter, signature
from typing import ParamSpec, TypeVar

MOST_WORDS = 20_000
"""Words that are compared, at most: each takes some microseconds, and an error should not take seconds."""

P = ParamSpec("P")
R = TypeVar("R")


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """ "; did you mean 'cement'?", or nothing where no known word is like it.

    >>> did_you_mean("timelimit", ["time_limit", "seed"])
    "; did you mean 'time_limit'?"
    >>> did_you_mean("banana", ["time_limit", "seed"])
    ''
    """
    from difflib import get_close_matches  # for those who have made a mistake only
    from itertools import islice

    words = {name.casefold(): name for name in islice(known, MOST_WORDS)}
    found = get_close_matches(str(word).casefold(), words, n=1, cutoff=0.6)
    return f"; did you mean {words[found[0]]!r}?" if found else ""


def with_suggestions(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose `TypeError` about an unknown keyword says which one was probably meant."""
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
