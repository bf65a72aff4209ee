"""Files that are written whole or not at all: under another name beside their place, then renamed.

Whoever reads the file, or finds it after a crash, a full disk or a Ctrl-C, sees the old one or the new one.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from dovetail.core.errors import OptionError


def write_file(path: str | Path, content: str | bytes) -> Path:
    """Write all of `content` to `path`, replacing what is there; an `OptionError` leaves it as it was."""
    path = Path(path)
    whole = content.encode("utf-8") if isinstance(content, str) else content
    try:
        _write(Path(os.path.realpath(path)), whole)  # a link stays one, and what it leads to is replaced
    except OSError as reason:
        raise _unwritable(path, reason) from None
    return path


def require_writable(path: str | Path) -> None:
    """Refuse a place that `write_file` could not write to: it is tried, with a file that is gone at once.

    For those who work an hour before they write.
    """
    path = Path(path)
    place = Path(os.path.realpath(path))
    try:
        if place.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        if place.exists() and not os.access(place, os.W_OK):
            raise PermissionError(0, "the file is write-protected")
        if not place.exists() or place.is_file():
            _beside(place, b"").unlink()
    except OSError as reason:
        raise _unwritable(path, reason) from None


def _write(place: Path, whole: bytes) -> None:
    if place.exists() and not place.is_file():  # a pipe or a device: nothing can be put in its place
        place.write_bytes(whole)
        return
    beside = _beside(place, whole)
    try:
        if place.exists():
            os.chmod(beside, stat.S_IMODE(place.stat().st_mode))
        os.replace(beside, place)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _beside(place: Path, whole: bytes) -> Path:
    """A new file in the same folder (a rename does not leave its disk), complete and on the disk."""
    beside = place.with_name(f".dovetail-{uuid4().hex}.part")
    number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)  # less what the umask forbids
    try:
        with os.fdopen(number, "wb") as file:
            file.write(whole)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
    return beside


def _unwritable(path: Path, reason: OSError) -> OptionError:
    why = "there is no such folder" if isinstance(reason, FileNotFoundError) else reason.strerror
    return OptionError(f"{path} cannot be written: {why}.")
