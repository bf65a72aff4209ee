"""What a user says of many equal blocks: columns by family, rows by what they do to each block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Family:
    """The same column, or the same few columns, of every block of a template.

    `lower` (0), `upper` (infinity) and `cost` are numbers, (n,) arrays with one for each of the n blocks,
    (n, k) arrays, or (1, k) arrays that hold for all blocks; `fixed` is both bounds. k, the number of columns
    per block, is that of the arrays unless `width` says it. Arrays are not copied: leave them as they are.

    >>> import dovetail as dt, numpy as np
    >>> problem = dt.Problem(sense="max")
    >>> plants = problem.add_template(3, {"load": dt.Family(upper=np.array([2.0, 4.0, 9.0]), cost=1.0)})
    >>> problem.mip.upper.tolist(), problem.mip.names[2]
    ([2.0, 4.0, 9.0], 'load[2]')
    """

    lower: Any = None
    upper: Any = None
    cost: Any = 0.0
    integer: bool = False
    fixed: Any = field(default=None, kw_only=True)
    width: int | None = field(default=None, kw_only=True)


@dataclass(frozen=True, eq=False)
class FamilyRow:
    """A row over families, ``lower <= sum of coefficient * column <= upper``.

    Among the `rows` of a template it stands for one row per block; in its `coupling` it is one row over
    all blocks, in which columns of the host may be named too. Coefficients and limits are numbers or arrays
    as in `Family`; limits of a coupling row, and coefficients of the host, are numbers or (k,). Over families
    of k columns there are k rows, one for each column (single columns are in all of them), unless `summed`
    adds the k columns up in one row.

    >>> import dovetail as dt
    >>> problem = dt.Problem(sense="max")
    >>> plants = problem.add_template(
    ...     2,
    ...     {"load": dt.Family(upper=4.0, cost=1.0), "on": dt.Family(upper=1.0, integer=True)},
    ...     rows=[dt.FamilyRow({"load": 1.0, "on": -4.0}, upper=0.0)],
    ...     coupling=[dt.FamilyRow({"on": 1.0}, upper=1.0, name="staff")],
    ... )
    >>> problem.mip.A.toarray().tolist(), problem.mip.row_name(2)
    ([[1.0, 0.0, -4.0, 0.0], [0.0, 1.0, 0.0, -4.0], [0.0, 0.0, 1.0, 1.0]], 'staff')
    """

    coefficients: Mapping[Any, Any]
    lower: Any = -np.inf
    upper: Any = np.inf
    summed: bool = field(default=False, kw_only=True)
    name: str = field(default="", kw_only=True)
