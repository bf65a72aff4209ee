"""Where the caller wants a solve to begin."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.core.arrays import require_finite, vector
from dovetail.core.errors import OptionError
from dovetail.modelling.snapshot import ModelSnapshot
from dovetail.run.context import Start
from dovetail.run.result import Result


def read_start(snapshot: ModelSnapshot, start: Any) -> Start:
    """`start=` over the columns of the snapshot: a value for each, or an earlier result and its prices."""
    if start is None:
        return Start()
    program = snapshot.problem.stated
    if isinstance(start, Result):
        x = start.x
        if x is not None and start.origin is not None and snapshot.origin is not None:
            x = snapshot.carry(x, start.origin)
        if x is not None and np.shape(x) != (program.n_columns,):
            raise OptionError(
                f"start has the shape {np.shape(x)}, the problem has {program.n_columns} columns: "
                "it is the result of another problem."
            )
        return Start(x, start.multipliers)
    x = vector("start", start, program.n_columns, OptionError)
    require_finite("start", x, program.column_name, OptionError)
    return Start(x)
