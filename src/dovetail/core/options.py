"""Checks of options, where they are given."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral, Real

from dovetail.core.errors import OptionError
from dovetail.core.words import did_you_mean


def require_number(
    what: str,
    value: object,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float = float("inf"),
) -> None:
    """Refuse values that are not finite numbers within the range."""
    fine = isinstance(value, Real) and not isinstance(value, bool)
    if fine:
        number = float(value)  # type: ignore[arg-type]
        fine = float("-inf") < number < below
        fine = fine and (above is None or number > above) and (at_least is None or number >= at_least)
    if not fine:
        limits = {">": above, ">=": at_least, "<": below if below < float("inf") else None}
        said = " and ".join(f"{sign} {limit:g}" for sign, limit in limits.items() if limit is not None)
        raise OptionError(f"{what} is {value!r}; give {f'a finite number {said}'.strip()}.")


def time_limit_of(seconds: object) -> float:
    """A `time_limit=` in seconds, infinity for None; anything else is refused."""
    if seconds is None or seconds == float("inf"):
        return float("inf")
    require_number("time_limit (seconds; None or inf: no limit)", seconds, at_least=0.0)
    return float(seconds)  # type: ignore[arg-type]


def require_count(what: str, value: object, *, at_least: int) -> None:
    """Refuse values that are not integers, and integers below the minimum."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < at_least:
        raise OptionError(f"{what} is {value!r}; give a whole number, at least {at_least}.")


def require_flags(what: str, options: object, *names: str) -> None:
    """Refuse an options object whose boolean fields are neither true nor false."""
    for name in names:
        value = getattr(options, name)
        if type(value).__name__ not in ("bool", "bool_"):  # numpy's own, without importing it
            raise OptionError(f"{what}: {name} is {value!r}; give True or False.")


def require_choice(what: str, value: object, choices: Collection[str]) -> None:
    """Refuse a value that is not among the names."""
    if not isinstance(value, str) or value not in choices:
        meant = did_you_mean(value, choices) or "."
        raise OptionError(f"{what} is {value!r}; choose {', '.join(choices)}{meant}")


def require_methods(what: str, value: object, methods: Collection[str], example: str) -> None:
    """Refuse a class in place of an object, and objects of another kind."""
    if isinstance(value, type) or not all(callable(getattr(value, name, None)) for name in methods):
        raise OptionError(f"{what} is {value!r}; give an object such as {example}.")
