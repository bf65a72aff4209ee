"""A TOML file: what it says, and on which line, for messages that name the place."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dovetail.core.errors import DovetailError, OptionError
from dovetail.problem_file import line_numbers

Place = line_numbers.Path

LARGEST = 1 << 26
"""Bytes that are read: a million names of columns, written out."""


@dataclass(frozen=True, eq=False)
class Document:
    """What a TOML file says, and where."""

    name: str
    """What messages call it."""
    folder: Path
    """What the names of files in it are relative to."""
    content: dict[str, Any]
    lines: dict[Place, int]
    """Empty for what was not read from a file: an option of the command line."""

    @classmethod
    def read(cls, path: Path) -> Document:
        """The file, or an error that says why it cannot be read."""
        try:
            size = path.stat().st_size
            if not path.is_file():
                raise OptionError(f"{path} is no file.")
            if size > LARGEST:
                raise OptionError(f"{path} has {size:,} bytes; at most {LARGEST:,} are read.")
            text = path.read_text(encoding="utf-8")
            return cls(str(path), path.parent, tomllib.loads(text), line_numbers.line_numbers(text))
        except OptionError:
            raise
        except FileNotFoundError:
            raise OptionError(f"there is no file {path}.") from None
        except OSError as reason:
            raise OptionError(f"{path} cannot be opened: {reason.strerror}.") from None
        except UnicodeDecodeError:
            raise OptionError(f"{path} is no text in UTF-8.") from None
        except tomllib.TOMLDecodeError as reason:
            raise OptionError(f"{path} is no TOML: {reason}.") from None
        except (RecursionError, ValueError):  # of tomllib, and of a number with too many digits
            raise OptionError(
                f"{path} is no TOML that can be read: it is nested too deeply, or a number is too long."
            ) from None

    def where(self, place: Place) -> str:
        """The line of a place; of what is missing, the line of what it is missing in."""
        while place and place not in self.lines:
            place = place[:-1]
        return f"{self.name}, line {self.lines[place]}" if place else self.name

    def wrong(self, place: Place, what: str) -> OptionError:
        """The error that names a place."""
        return OptionError(f"{self.where(place)}: {what}")

    @contextmanager
    def at(self, place: Place) -> Iterator[None]:
        """Errors about what stands at a place begin with where that is."""
        try:
            yield
        except DovetailError as reason:
            raise type(reason)(f"{self.where(place)}: {reason}") from reason

    def file(self, place: Place, name: str) -> Path:
        """The file of that name, seen from the folder of this one; it has to be there."""
        path = self.folder / name
        if not path.is_file():
            raise self.wrong(place, f"{path} is no file." if path.exists() else f"there is no file {path}.")
        return path
