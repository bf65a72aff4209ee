"""Parts of a solve that fail: the solve continues without them, logs the failure, and counts it.

A solve calls many parts: phases, facts, reformulations, engines, hints. An exception in one part must not
lose the results of the others. `expendable` is the one place that catches such an exception. Not caught are

- exceptions of the user's own code: `users_code` marks them where a predictor is called, and `solve` raises
them. (A callback's error never gets here: the monitor keeps it and `solve` raises it at the end.)
- `OutOfTime`, `KeyboardInterrupt` and `SystemExit`, which are no `Exception`.

A lack of memory is a failure of the part, also inside a predictor, because the part chooses the number of
rows per call. Strict mode (`strict`) raises all failures but those of an engine: HiGHS refuses a matrix with
entries beyond 1e15, for example, which is no fault of dovetail's. `EngineError` is counted in both modes.

A solve must not end because one of its parts fails, but a test must not pass if a part fails. The environment
variable `DOVETAIL_STRICT=1` turns strict mode on; the test suite sets the variable.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from traceback import walk_tb
from types import TracebackType

from dovetail.core.errors import EngineError
from dovetail.core.words import listed, several

_log = logging.getLogger("dovetail")

LONGEST = 200
"""Largest number of characters of an error that are repeated."""
USERS, NOTED = "_dovetail_users_code", "_dovetail_noted"
"""Attributes of an exception: raised by the user's code; already counted."""
NO_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")
"""Torch's words for a lack of memory on CPUs and GPUs, in a `RuntimeError`."""
AUTOGRAD, TORCH = os.path.join("torch", "autograd", ""), f"{os.sep}torch{os.sep}"
DOVETAIL_FOLDER = str(Path(__file__).parents[1]) + os.sep
"""Parts of the paths of torch's and dovetail's code."""


VARIABLE = "DOVETAIL_STRICT"


@dataclass(frozen=True)
class Failure:
    """A part that failed, with its first error message.

    >>> str(Failure("branching", "MemoryError", "none left"))
    'branching (MemoryError: none left)'
    """

    part: str
    error: str
    """The type of the exception."""
    message: str
    times: int = 1

    def __str__(self) -> str:
        said = ": ".join(filter(None, (self.error, self.message)))
        return f"{self.part} ({said})" + (f", {self.times:,} times" if self.times > 1 else "")


class Failures:
    """The failures of one solve, by part and kind of error."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._known = dict[tuple[str, str], Failure]()

    def add(self, part: str, error: Exception) -> None:
        """Count a failure; the first one of its kind is logged."""
        key = part, type(error).__name__
        if key in self._known:
            self._known[key] = replace(self._known[key], times=self._known[key].times + 1)
            return
        self._known[key] = Failure(*key, str(error).strip().partition("\n")[0][:LONGEST])
        self._say(f"failed: {self._known[key]}; the solve continues without it")

    def __iter__(self) -> Iterator[Failure]:
        return iter(self._known.values())


def in_words(failures: Sequence[Failure]) -> str:
    """The failures in words for a result's message; "" without failures."""
    if not failures:
        return ""
    named = listed([*map(str, failures)])
    return f"{several(len(failures), 'part')} failed, and the solve continued without: {named}"


_solve: ContextVar[Failures | None] = ContextVar("dovetail_failures", default=None)


@contextmanager
def counted(say: Callable[[str], None]) -> Iterator[Failures]:
    """Collects failures while a solve is running; each is passed to `say` once."""
    failures = Failures(say)
    token = _solve.set(failures)
    try:
        yield failures
    finally:
        _solve.reset(token)


class expendable:
    """A part that the solve can do without: `with expendable("hints"): ...`. Exceptions of the given kinds
    (by default all) are caught here, and the code after the block continues."""

    def __init__(self, name: str, *kinds: type[Exception]) -> None:
        self._name, self._kinds = name, kinds or (Exception,)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, self._kinds) or reaches_the_user(error):
            return False
        note(self._name, error)
        return True


def reaches_the_user(error: Exception) -> bool:
    """Whether an exception must reach the user: it is the user's own, or strict mode raises it."""
    return is_users(error) or (strict() and not isinstance(error, EngineError))


def note(name: str, error: Exception) -> None:
    """Count an exception that ended a part; the same exception is counted once."""
    if getattr(error, NOTED, False):
        return
    setattr(error, NOTED, True)
    _log.debug("%s failed", name, exc_info=error)
    error.__traceback__ = None  # the stored exception must not keep its frames alive
    failures = _solve.get()
    if failures is None:
        _log.warning("%s", Failure(name, type(error).__name__, str(error)))
    else:
        failures.add(name, error)


class users_code:
    """Around a call of the user's predictor: its exceptions are the user's."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            mark(error)


def mark(error: Exception) -> None:
    """Mark an exception as the user's; the mark travels to other processes."""
    setattr(error, USERS, True)


def is_users(error: BaseException) -> bool:
    """Whether an exception comes from the user's code and is not a lack of memory."""
    if isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(said in str(error) for said in NO_MEMORY)
    ):
        return False
    return getattr(error, USERS, False) or _in_users_gradient(error)


def _in_users_gradient(error: BaseException) -> bool:
    """Whether an exception comes from the user's code inside a gradient. Torch calls Python code there only
    for autograd functions, hooks and modules that are evaluated again; they are the user's unless dovetail's
    code is among them."""
    files = [frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)]
    begin = next((i for i, file in enumerate(files) if AUTOGRAD in file), len(files))
    inside = [file for file in files[begin:] if TORCH not in file]
    return bool(inside) and not any(file.startswith(DOVETAIL_FOLDER) for file in inside)


def strict() -> bool:
    """Whether faults of dovetail's own parts are raised; read each time, so that tests can switch it."""
    return os.environ.get(VARIABLE, "") not in ("", "0")
