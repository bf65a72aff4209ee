"""Points that methods have been at, kept where a later method wants them."""

from __future__ import annotations

from collections.abc import Callable

from dovetail.core.arrays import FloatArray

Restrict = Callable[[FloatArray], FloatArray]


class Archive:
    """Points with their outputs as the networks have them, feasible or not.

    Keeping all of them would cost memory in every solve, so that it is done only while `keeps` is True.
    """

    def __init__(self) -> None:
        self.keeps = False
        self.points: list[FloatArray] = []

    def add(self, z: FloatArray) -> None:
        """Keep a point, if points are kept now."""
        if self.keeps:
            self.points.append(z)

    def restricted(self, restrict: Restrict) -> RestrictedArchive:
        """The same archive for a problem with more columns."""
        return RestrictedArchive(self, restrict)


class RestrictedArchive:
    """An archive seen from a problem with more columns: they are cut off on the way in."""

    points: tuple[FloatArray, ...] = ()
    """What is kept belongs to the original."""

    def __init__(self, original: Archive | RestrictedArchive, restrict: Restrict) -> None:
        self._original, self._restrict = original, restrict

    @property
    def keeps(self) -> bool:
        """Whether points are kept now."""
        return self._original.keeps

    def add(self, z: FloatArray) -> None:
        """Keep a point of the larger problem as one of the original."""
        if self.keeps:
            self._original.add(self._restrict(z))

    def restricted(self, restrict: Restrict) -> RestrictedArchive:
        """The same archive for a problem with yet more columns."""
        return RestrictedArchive(self, restrict)
