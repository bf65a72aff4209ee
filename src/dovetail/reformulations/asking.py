"""All answers that a long table needs, if they come in time.

Rows are asked for in growing batches, so that little is lost on a predictor that takes a second for each, and
one that takes as long for a thousand rows as for one is not judged by the first.
"""

from __future__ import annotations

import time

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.block import Block
from dovetail.core.description import Description
from dovetail.core.predictor import Limited, Predictor

SHORT_ROWS = 256
"""A table up to this length is written whatever its predictor takes: a search asks for more in a second."""
FUNCTION_ROWS = 5_000
"""Of a predictor of which nothing but its answers is known, so that nothing else can prove anything: a search
asks for as many in five seconds, and HiGHS takes as long for the MIP (0.6 s for 2,000 rows)."""
NETWORK_ROWS = 1_000
"""Where branch and bound over its inputs is there as well: beyond that it may be the quicker one."""
QUADRATIC_ROWS = 16
"""Of a quadratic function: SCIP, and tangents, know more of it than of a long list of its values."""
TRIED = 0.1
"""Part of the time that is spent on finding out that it is not enough."""
GROWTH = 4
"""Of a batch over the one before it."""


def longest_table(block: Block, seconds: float) -> int:
    """The most rows of a table of this block, where there are so many seconds to ask for them.

    Trees have methods that know where they jump.
    """
    left = block.predictor.evaluations_left if isinstance(block.predictor, Limited) else None
    longest = _longest(block.description, seconds)
    return longest if left is None else min(longest, left)


def _longest(description: Description, seconds: float) -> int:
    if description.quadratic is not None:
        return QUADRATIC_ROWS
    if seconds <= 0.0 or description.trees is not None:
        return SHORT_ROWS
    known = description.layers is not None or description.program is not None
    return NETWORK_ROWS if known else FUNCTION_ROWS


def answers_within(predictor: Predictor, X: FloatArray, seconds: float) -> FloatArray | None:
    """What a predictor says of each row, or None where that would take longer than so many seconds."""
    answers: list[FloatArray] = []
    begin, asked, size = time.perf_counter(), 0, 1
    while asked < len(X):
        begun = time.perf_counter()
        answers.append(predictor.predict(X[asked : asked + size]))
        asked, ended = asked + size, time.perf_counter()
        rest = (len(X) - asked) * (ended - begun) / size
        if ended - begin > TRIED * seconds and ended - begin + rest > seconds:
            return None
        size *= GROWTH
    return np.concatenate(answers) if answers else None
