"""Variables that are known by being themselves."""

from __future__ import annotations

from typing import Any
from weakref import ref


class Identity:
    """A key for a variable that cannot be hashed or compared, for instance because == makes a constraint.

    Equal to no other than a key of the same object, which it does not keep alive.
    """

    __slots__ = ("_number", "_object")

    def __init__(self, thing: Any) -> None:
        self._number, self._object = id(thing), ref(thing)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Identity)
            and self._number == other._number
            and self._object() is other._object()  # a number is given again when an object is gone
        )

    @property
    def thing(self) -> Any:
        """The object, or None if it is gone."""
        return self._object()
