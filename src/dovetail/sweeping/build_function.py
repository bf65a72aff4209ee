"""The function that builds the cases' problems: looked at here, called in other processes."""

from __future__ import annotations

import inspect
import pickle
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dovetail.core.errors import OptionError
from dovetail.sweeping.cases import Case

FIX = (
    "new processes import it by its name, so it has to be a function of a file: def it at the top of a "
    "module or of the program that is run (no lambda, no function in a function, nothing typed into a "
    "notebook)"
)


def name_of(build: Any, cases: Sequence[Case]) -> str:
    """The function's name, if other processes can find the function and it takes every case."""
    if not callable(build):
        raise OptionError(f"build is {build!r}; give a function that returns a problem for each case.")
    name = _name(build)
    try:
        pickled = pickle.dumps(build)
    except Exception as reason:
        raise OptionError(f"build {name!r} cannot be sent to another process ({reason}): {FIX}.") from None
    if b"__main__" in pickled and not _main_is_a_file():
        raise OptionError(f"build {name!r} is not in a file: {FIX}.")
    _require_accepted(name, build, cases)
    return name


def _name(build: Any) -> str:
    while isinstance(build, partial):
        build = build.func
    return str(getattr(build, "__qualname__", type(build).__qualname__))


def _main_is_a_file() -> bool:
    """Whether another process can import the program that runs, as `multiprocessing` would."""
    main = sys.modules["__main__"]
    if getattr(main, "__spec__", None) is not None:  # python -m
        return True
    file = getattr(main, "__file__", None)
    return file is not None and Path(file).exists()


def _require_accepted(name: str, build: Callable[..., Any], cases: Sequence[Case]) -> None:
    try:
        signature = inspect.signature(build)
    except (TypeError, ValueError):  # functions written in C do not tell
        return
    for number, case in enumerate(cases):
        try:
            signature.bind(**case)
        except TypeError as reason:
            raise OptionError(
                f"build {name!r} does not take case {number} of grid ({reason}); the names of grid are its "
                "keywords."
            ) from None
