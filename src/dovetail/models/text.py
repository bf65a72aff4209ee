"""Text files, unpacked and read line by line under limits.

A compressed file of a megabyte can hold a gigabyte, so its size is counted while it is unpacked.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from dovetail.core.errors import ModelError
from dovetail.core.files import Meter

GZIP_MAGIC = b"\x1f\x8b"
"""The first bytes of a gzip file, by which HiGHS recognises it too."""
LONGEST_LINE = 1 << 22
"""Largest number of bytes of a line. Some programs write a whole objective into one line."""
PIECE = 1 << 20
"""Number of bytes unpacked at a time."""
CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")
"""Control characters, at which some readers stop."""

NAME = 16
"""Number of elements that a row or column counts for, because its name is stored several times."""
NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""A number in the form that all readers accept: no nan, no hexadecimal, no comma."""
INFINITE = re.compile(rb"[+-]?inf(?:inity)?", re.IGNORECASE)
"""Words for an infinite limit."""


@contextmanager
def unpacked(path: Path, meter: Meter) -> Iterator[Path]:
    """A plain file with the same text: the file itself, or a temporary unpacked one."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == GZIP_MAGIC
        if not packed:
            meter.add_bytes(path.stat().st_size, "the file has")
            yield path
            return
    except OSError as reason:
        raise ModelError(f"{path.name} cannot be opened: {reason.strerror}.") from reason
    with TemporaryDirectory(prefix="dovetail-") as folder:
        plain = Path(folder) / path.name.removesuffix(".gz")
        _unpack(path, plain, meter)
        yield plain


def _unpack(path: Path, plain: Path, meter: Meter) -> None:
    try:
        with gzip.open(path) as packed, plain.open("wb") as file:
            while piece := packed.read(PIECE):
                meter.add_bytes(len(piece), "unpacked, the file has more than")
                meter.require_time()
                file.write(piece)
    except (OSError, EOFError, zlib.error) as reason:
        raise ModelError(
            f"{path.name} cannot be unpacked ({reason}); it is cut short or damaged: fetch it again."
        ) from reason


def lines(path: Path, meter: Meter) -> Iterator[tuple[int, bytes]]:
    """The lines of a plain file, numbered from 1, without line ends."""
    number, rest = 0, b""
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            meter.require_time()
            *whole, rest = (rest + piece).split(b"\n")
            _require_text(whole, rest, piece, number, meter)
            for line in whole:
                number += 1
                yield number, line
    if rest:
        _require_utf8(rest, number + 1, meter)
        yield number + 1, rest


def _require_text(whole: list[bytes], rest: bytes, piece: bytes, before: int, meter: Meter) -> None:
    """Refuse a file that is not text; lines are examined only if something is wrong."""
    if piece.isascii() and len(rest) <= LONGEST_LINE and not CONTROL.search(piece):
        return
    for k, line in enumerate([*whole, rest]):
        if CONTROL.search(line):
            raise ModelError(
                f"{meter.name}: line {before + k + 1} has characters that are not text; the file is damaged."
            )
        if len(line) > LONGEST_LINE:
            raise ModelError(f"{meter.name}: line {before + k + 1} is longer than {LONGEST_LINE} characters.")
        if k < len(whole):
            _require_utf8(line, before + k + 1, meter)


def _require_utf8(line: bytes, number: int, meter: Meter) -> None:
    try:
        line.decode()
    except UnicodeDecodeError:
        raise ModelError(
            f"{meter.name}: line {number} is not UTF-8; convert the file, or it is damaged."
        ) from None


def shown(word: bytes) -> str:
    """A word of a file in a message."""
    text = word.decode("utf-8", "replace")
    return repr(text if len(text) <= 40 else text[:40] + "...")
