"""Names like `x[0,1]`, which Gurobi gives by default and HiGHS takes for the beginning of a quadratic part.

HiGHS is given a copy of the file with `x(0,1)` in their place, which it takes for a name; what it read gets
the names of the file back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from dovetail.core.file_limits import Meter
from dovetail.core.mip import Mip
from dovetail.models.lp.program import LpProgram
from dovetail.models.lp.tokens import NAME
from dovetail.models.text import lines

_NAME = re.compile(NAME)
_ROUND = bytes.maketrans(b"[]", b"()")


@contextmanager
def without_brackets(path: Path, text: LpProgram, meter: Meter) -> Iterator[Path]:
    """A file that says the same and that HiGHS can read: the file itself where no name has brackets."""
    if not any(b"[" in name for names in (text.columns, text.labels) for name in names):
        yield path
        return
    with TemporaryDirectory(prefix="dovetail-") as folder:
        plain = Path(folder) / path.name
        with plain.open("wb") as file:
            for _, line in lines(path, meter):
                said = line.split(b"\\")[0]
                file.write(_NAME.sub(lambda found: found[0].translate(_ROUND), said) + b"\n")
        yield plain


def with_brackets(mip: Mip, text: LpProgram) -> Mip:
    """What HiGHS read, by the names of the file. Two that became one are one column, and disagree."""
    names, row_names = _renamed(mip.names, text.columns), _renamed(mip.row_names, text.labels)
    if names is mip.names and row_names is mip.row_names:
        return mip
    return replace(mip, names=names, row_names=row_names)


def _renamed(names: Sequence[str] | None, written: Iterable[bytes]) -> Sequence[str] | None:
    own = {name.translate(_ROUND).decode(): name.decode() for name in written if b"[" in name}
    return names if names is None or not own else [own.get(name, name) for name in names]
