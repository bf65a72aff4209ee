"""Files: limits on reading, and safe writing.

Without limits a small file may use up all memory and time. Every reader therefore has limits, wide enough for
honest files, which a caller can raise.

Files are written under a temporary name in the same folder and then renamed. A reader, also after a crash, a
full disk or a Ctrl-C, sees either the old file or the new one.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from dovetail.core.errors import DovetailError, OptionError
from dovetail.core.options import require_count, require_number


@dataclass(frozen=True)
class FileLimits:
    """Limits on reading one file; None keeps the reader's default.

    >>> import dovetail as dt
    >>> dt.FileLimits(bytes=10**9, seconds=60.0)
    FileLimits(bytes=1000000000, elements=None, seconds=60.0)
    """

    bytes: int | None = None
    """Size of the file, unpacked, with the files that it refers to."""
    elements: int | None = None
    """In a model file: words and numbers (a row or column counts for sixteen). In a network file: numbers
    computed in one pass over a few samples."""
    seconds: float | None = None
    """Time for reading; may be infinite."""

    def __post_init__(self) -> None:
        if self.bytes is not None:
            require_count("FileLimits: bytes", self.bytes, at_least=1)
        if self.elements is not None:
            require_count("FileLimits: elements", self.elements, at_least=1)
        if self.seconds is not None and self.seconds != float("inf"):
            require_number("FileLimits: seconds", self.seconds, above=0.0)

    def before(self, usual: FileLimits) -> FileLimits:
        """These limits, completed by the defaults."""
        said = {name: value for name, value in vars(self).items() if value is not None}
        return replace(usual, **said)


def text_of(path: Path, most_bytes: int) -> str:
    """The text of a file, or an error that says why it cannot be read."""
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise OptionError(f"{path} is no file: it is a {'folder' if path.is_dir() else 'device'}.")
        if size > most_bytes:
            raise OptionError(f"{path} has {size:,} bytes; at most {most_bytes:,} are read.")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise OptionError(f"there is no file {path}.") from None
    except OSError as reason:
        raise OptionError(f"{path} cannot be opened: {reason.strerror}.") from None
    except UnicodeDecodeError:
        raise OptionError(f"{path} is no text in UTF-8.") from None


@dataclass
class Meter:
    """Counts the resources that reading one file has used, against its limits."""

    name: str
    limits: FileLimits
    """The limits, with defaults filled in, so that none is None."""
    call: str
    """The call that takes `limits=`, for messages."""
    error: type[DovetailError]
    bytes: int = 0
    elements: int = 0
    met: bool = False
    """Whether a limit was reached, so that nothing else needs to be tried."""

    def __post_init__(self) -> None:
        self._start = time.monotonic()

    def add_bytes(self, count: int, what: str) -> None:
        """Count bytes that were read or unpacked, or are about to be."""
        self.bytes += count
        assert self.limits.bytes is not None
        if self.bytes > self.limits.bytes:
            raise self.over("bytes", f"{what} {self.bytes} bytes", self.limits.bytes)

    def add_elements(self, count: int, what: str) -> None:
        """Count numbers or names."""
        self.elements += count
        assert self.limits.elements is not None
        if self.elements > self.limits.elements:
            raise self.over("elements", f"{what} {self.elements} elements", self.limits.elements)

    @property
    def left(self) -> float:
        """Seconds that are left."""
        assert self.limits.seconds is not None
        return self._start + self.limits.seconds - time.monotonic()

    def require_time(self, more: float = 0.0) -> None:
        """Raise an error if the time is over, or will be after `more` seconds."""
        if self.left < more:
            assert self.limits.seconds is not None
            raise self.over("seconds", "reading it takes longer, or would", self.limits.seconds)

    def over(self, kind: str, what: str, limit: float) -> DovetailError:
        """The error that names the limit and how to raise it."""
        self.met = True
        return self.error(
            f"{self.name}: {what}; the limit is {limit:,} {kind}. If you trust the file, raise it: "
            f"dovetail.{self.call}(path, limits=dovetail.FileLimits({kind}=...))."
        )


def write_file(path: str | Path, content: str | bytes) -> Path:
    """Write `content` to `path` completely, replacing an existing file; after an `OptionError` the old file
    is unchanged."""
    path = Path(path)
    whole = content.encode("utf-8") if isinstance(content, str) else content
    try:
        _write(Path(os.path.realpath(path)), whole)  # a symbolic link is kept; its target is replaced
    except OSError as reason:
        raise _unwritable(path, reason) from None
    return path


def require_writable(path: str | Path) -> None:
    """Raise an error if `write_file` could not write there; a temporary file tries it. For callers that work
    long before they write."""
    path = Path(path)
    place = Path(os.path.realpath(path))
    try:
        if place.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        if place.exists() and not os.access(place, os.W_OK):
            raise PermissionError(0, "the file is write-protected")
        if not place.exists() or place.is_file():
            _temporary_file(place, b"").unlink()
    except OSError as reason:
        raise _unwritable(path, reason) from None


def _write(place: Path, whole: bytes) -> None:
    if place.exists() and not place.is_file():  # a pipe or a device cannot be replaced by a new file
        place.write_bytes(whole)
        return
    beside = _temporary_file(place, whole)
    try:
        if place.exists():
            os.chmod(beside, stat.S_IMODE(place.stat().st_mode))
        os.replace(beside, place)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _temporary_file(place: Path, whole: bytes) -> Path:
    """A new file in the same folder, complete and on the disk, to be renamed."""
    beside = place.with_name(f".dovetail-{uuid4().hex}.part")
    number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)  # reduced by the umask
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
