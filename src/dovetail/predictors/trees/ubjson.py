"""Universal Binary JSON, as XGBoost writes it: a reader of plain values that runs nothing.

Arrays of one type are read as numpy arrays in one piece, so that a model of a million nodes takes as long as
its bytes take to copy. Whatever does not add up is a `ValueError`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

NUMBERS: dict[bytes, np.dtype[Any]] = {
    b"i": np.dtype(">i1"),
    b"U": np.dtype(">u1"),
    b"I": np.dtype(">i2"),
    b"l": np.dtype(">i4"),
    b"L": np.dtype(">i8"),
    b"d": np.dtype(">f4"),
    b"D": np.dtype(">f8"),
}
DEEPEST = 64
"""Containers within containers; a model has ten."""


def parse(content: bytes) -> Any:
    """The one value that `content` holds."""
    return _Reader(content).value()


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def value(self, depth: int = 0) -> Any:
        """The next value, whatever it is."""
        return self._of(self._marker(), depth)

    def _of(self, marker: bytes, depth: int) -> Any:
        if marker in NUMBERS:
            return self._number(marker)
        if marker == b"S":
            return self._text()
        if marker == b"C":
            return self._take(1).decode("ascii")
        if marker in (b"Z", b"T", b"F"):
            return {b"Z": None, b"T": True, b"F": False}[marker]
        if depth > DEEPEST:
            raise ValueError("too many containers within each other")
        if marker == b"[":
            return self._array(depth + 1)
        if marker == b"{":
            return self._object(depth + 1)
        raise ValueError(f"no value begins with {marker!r}")

    def _array(self, depth: int) -> Any:
        kind, count = self._header()
        if kind in NUMBERS:
            assert count is not None
            dtype = NUMBERS[kind]
            numbers = np.frombuffer(self._take(count * dtype.itemsize), dtype=dtype)
            return numbers.astype(dtype.newbyteorder("="))
        found: list[Any] = []
        while len(found) < count if count is not None else self._peek() != b"]":
            found.append(self._of(kind, depth) if kind else self.value(depth))
        self._end(count)
        return found

    def _object(self, depth: int) -> dict[str, Any]:
        kind, count = self._header()
        found: dict[str, Any] = {}
        read = 0
        while read < count if count is not None else self._peek() != b"}":
            name = self._text()
            found[name] = self._of(kind, depth) if kind else self.value(depth)
            read += 1
        self._end(count)
        return found

    def _header(self) -> tuple[bytes, int | None]:
        """The type of all values and how many there are, where that is said."""
        kind, count = b"", None
        if self._peek() == b"$":
            self._at += 1
            kind = self._marker()
        if self._peek() == b"#":
            self._at += 1
            count = self._count()
        if kind and count is None:
            raise ValueError("a container of one type says how many values it has")
        if kind in (b"Z", b"T", b"F"):
            raise ValueError("values that take no bytes can be any number of them")
        return kind, count

    def _end(self, count: int | None) -> None:
        """Containers that do not say their length have an end marker."""
        if count is None:
            self._at += 1

    def _count(self) -> int:
        marker = self._marker()
        count = self._number(marker) if marker in NUMBERS else -1
        if not isinstance(count, int) or not 0 <= count <= len(self._content):
            raise ValueError(f"{count} is no length")
        return count

    def _text(self) -> str:
        return self._take(self._count()).decode("utf-8")

    def _number(self, marker: bytes) -> int | float:
        dtype = NUMBERS[marker]
        taken = self._take(dtype.itemsize)
        if dtype.kind != "f":
            return int.from_bytes(taken, "big", signed=dtype.kind == "i")
        found: float = np.frombuffer(taken, dtype=dtype)[0].item()
        return found

    def _marker(self) -> bytes:
        marker = b"N"
        while marker == b"N":  # no operation
            marker = self._take(1)
        return marker

    def _peek(self) -> bytes:
        return self._content[self._at : self._at + 1]

    def _take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._content):
            raise ValueError("it ends too early")
        taken = self._content[self._at : end]
        self._at = end
        return taken
