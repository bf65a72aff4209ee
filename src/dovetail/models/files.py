"""Model files, .mps and .lp: read by HiGHS and by a strict reader of our own, which must agree."""

from __future__ import annotations

import os
from pathlib import Path

from dovetail.core.errors import ModelError, OptionError
from dovetail.core.files import FileLimits, Meter
from dovetail.core.mip import Mip
from dovetail.models.highs import read_by_highs
from dovetail.models.lp import LpProgram, parse_lp, with_brackets, without_brackets
from dovetail.models.mps import outline
from dovetail.models.text import shown, unpacked

SUFFIXES = (".mps", ".mps.gz", ".lp", ".lp.gz")
LIMITS = FileLimits(bytes=1 << 29, elements=1 << 26, seconds=120.0)
"""Four million rows and columns, or twenty million entries: a few gigabytes in HiGHS."""


def read(path: str | Path, *, limits: FileLimits | None = None) -> Mip:
    """Read the linear program in an .mps or .lp file, also compressed (.gz).

    A file that is truncated, or that another reader would understand differently, is refused. Size and time
    of reading are limited; `limits=dovetail.FileLimits(bytes=..., elements=..., seconds=...)` raises the
    limits.

    >>> import pathlib, tempfile, dovetail as dt
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "plan.lp")
    ...     _ = path.write_text("minimize\\n obj: 2 a + b\\nsubject to\\n need: a + b >= 3\\nend\\n")
    ...     mip = dt.read(path)
    >>> mip.names, mip.row_lower.tolist()
    (('a', 'b'), [3.0])
    """
    if not isinstance(path, (str, os.PathLike)) or "\0" in str(path):
        raise ModelError(f"read takes the path of a file, not {path!r}.")
    if limits is not None and not isinstance(limits, FileLimits):
        raise OptionError(f"limits is {limits!r}; give dovetail.FileLimits(...).")
    path = Path(path)
    if not path.name.endswith(SUFFIXES):
        raise ModelError(f"{path}: the name must end in {', '.join(SUFFIXES)}.")
    if not path.is_file():
        raise ModelError(f"{path}: there is no such file.")
    meter = Meter(path.name, (limits or FileLimits()).before(LIMITS), "read", ModelError)
    with unpacked(path, meter) as plain:
        if path.name.removesuffix(".gz").endswith(".mps"):  # HiGHS writes the same text for both
            found = outline(plain, meter)
            mip = read_by_highs(plain, meter, free=not found.fixed)
            agrees = found.agrees(mip)
        else:
            text = parse_lp(plain, meter)
            _require_possible(path.name, text)
            with without_brackets(plain, text, meter) as readable:
                mip = with_brackets(read_by_highs(readable, meter), text)
            agrees = text.agrees(mip)
    if not agrees:
        raise ModelError(
            f"{path.name}: HiGHS reads a different model than the text states (it may take a name for a "
            f"keyword); write the file again with other names, or in the other format (.mps, .lp)."
        )
    return mip


def _require_possible(file: str, text: LpProgram) -> None:
    """Report a variable with contradictory bounds by its name: HiGHS only refuses the file."""
    for column in text.columns:
        low, high = text.limits(column)
        if low > high:
            raise ModelError(
                f"{file}: variable {shown(column)} is bounded to at least {low:g} and at most {high:g}, "
                "which no number is; a variable without a lower bound of its own is at least 0."
            )
