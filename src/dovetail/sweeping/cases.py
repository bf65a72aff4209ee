"""The cases of a sweep: what `build` is called with, one keyword per name."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from dovetail.core.errors import OptionError

Case = dict[str, Any]
"""What can be said in JSON, so that a case is the same when it is read from a file."""

GRID = "give a mapping of names to lists of values, or a list of mappings of names to values"


def cases_of(grid: Any, taken: Collection[str]) -> list[Case]:
    """All combinations of a mapping's values, or the mappings of a sequence; `taken` names are refused."""
    if isinstance(grid, Mapping):
        given = _product(grid) if grid else []
    elif isinstance(grid, Iterable) and not isinstance(grid, (str, bytes)):
        given = list(grid)
    else:
        raise OptionError(f"grid is {grid!r}; {GRID}.")
    if not given:
        raise OptionError(f"grid is empty; {GRID}.")
    cases = [_case(f"case {number} of grid", case) for number, case in enumerate(given)]
    _require_free(cases, taken)
    _require_different(cases)
    return cases


def key_of(case: Case) -> str:
    """What tells cases apart, here and in a file."""
    return json.dumps(case, sort_keys=True, allow_nan=False)


def said(case: Case) -> str:
    """A case in a line of the log."""
    return ", ".join(f"{name} {json.dumps(value)}" for name, value in case.items()) or "the only case"


def _product(grid: Mapping[Any, Any]) -> list[Case]:
    for name, values in grid.items():
        if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
            raise OptionError(f"grid: the values of {name!r} are {values!r}; give a list of them.")
    lists = {name: list(values) for name, values in grid.items()}
    for name, values in lists.items():
        if not values:
            raise OptionError(f"grid: there are no values of {name!r}; give a list with at least one.")
    return [dict(zip(lists, chosen, strict=True)) for chosen in itertools.product(*lists.values())]


def _case(what: str, case: Any) -> Case:
    if not isinstance(case, Mapping):
        raise OptionError(f"{what} is {case!r}; {GRID}.")
    plain = {_name(what, name): _plain(f"{what}: {name}", value) for name, value in case.items()}
    read: Case = json.loads(json.dumps(plain))  # an enum is a string or a number from here on
    return read


def _name(what: str, name: Any) -> str:
    if not isinstance(name, str):
        raise OptionError(f"{what} has the name {name!r}; names are strings, the keywords of build.")
    return str(name)


def _plain(what: str, value: Any) -> Any:
    """The value as JSON has it: numpy's numbers and arrays as Python's, tuples as lists."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(what, item) for item in value]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: _plain(what, item) for name, item in value.items()}
    raise OptionError(
        f"{what} is {value!r}, which JSON has no word for; give finite numbers, strings, True, False, None, "
        "or lists and mappings of them, and let build make what it needs of them."
    )


def _require_free(cases: list[Case], taken: Collection[str]) -> None:
    for name in sorted({name for case in cases for name in case}):
        if name in taken:
            raise OptionError(
                f"grid names {name!r}, which is a column of the table of results ({', '.join(taken)}); "
                "call it something else."
            )


def _require_different(cases: list[Case]) -> None:
    seen: dict[str, int] = {}
    for number, case in enumerate(cases):
        first = seen.setdefault(key_of(case), number)
        if first != number:
            raise OptionError(
                f"cases {first} and {number} of grid are the same ({said(case)}); leave one out."
            )
