"""Result files: read with an error that names the file, and matched with a problem by the columns' names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dovetail.core.errors import OptionError

if TYPE_CHECKING:  # commands that read no result need no numpy
    from dovetail.core.problem import Problem
    from dovetail.run.result import Result

LARGEST = 1 << 30
"""Bytes: ten million columns with their names, and several times that in memory."""


def read_result(path: Path) -> Result:
    """The result in a file that `--solution` or `Result.to_json` wrote."""
    from dovetail.run.result import Result

    try:
        if path.is_dir():
            raise OptionError(f"{path} is a folder; give a result file.")
        if path.stat().st_size > LARGEST:
            raise OptionError(f"{path} has more than {LARGEST:,} bytes, no result has.")
        return Result.from_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise OptionError(f"there is no file {path}.") from None
    except OSError as reason:
        raise OptionError(f"{path} cannot be opened: {reason.strerror}.") from None
    except UnicodeDecodeError:
        raise OptionError(f"{path} is no result file: it is no text in UTF-8.") from None
    except OptionError as reason:
        if str(path) in str(reason):
            raise
        raise OptionError(f"{path}: {reason}") from None


def require_same_columns(path: Path, result: Result, problem: Problem) -> None:
    """Refuse the result of another problem."""
    assert result.x is not None
    mip = problem.mip
    if result.names != mip.names or result.x.size != mip.n_columns:
        mine, theirs = set(mip.names or ()), set(result.names or ())
        other = sorted(mine ^ theirs)
        why = f"{other[0]!r} is a column of one only" if other else "their columns are in another order"
        raise OptionError(f"{path} is the result of another problem: {why}.")


def start_from(path: Path, problem: Problem) -> Any:
    """A start from a result file: all of it where the columns are the same, else what has the same names."""
    import numpy as np

    result, mip = read_result(path), problem.mip
    if result.x is None:
        raise OptionError(f"{path} has no point to start from: its status is {result.status.value}.")
    if result.names == mip.names and result.x.size == mip.n_columns:
        return result
    value = dict(zip(result.names or (), result.x.tolist(), strict=False))
    known = [j for j, name in enumerate(mip.names or ()) if name in value]
    if not known:
        raise OptionError(f"{path} is the result of another problem: no column has the same name.")
    start = np.clip(0.0, mip.lower, mip.upper)
    start[known] = [value[(mip.names or ())[j]] for j in known]
    return start
