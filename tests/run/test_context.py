"""What methods share within a solve.

Points on the way: kept only on request, in the columns of the problem that wants them.
"""

import numpy as np
import pytest

from tests.contexts import context_of
from tests.small import knapsack


def test_once_is_once_for_all_parts_of_the_time():
    context, calls = context_of(knapsack()), []

    def work(given):
        calls.append(given)
        return object()

    part = context.part(0.5).part(0.5)
    first = part.once(work)
    assert context.once(work) is first and context.part(0.1).once(work) is first
    assert calls == [context]  # made with the whole time, whoever asked first


def test_what_failed_is_not_tried_again():
    context, calls = context_of(knapsack()), []

    def work(given):
        calls.append(given)
        raise ValueError("it cannot be done")

    for asker in (context, context.part(0.5)):
        with pytest.raises(ValueError, match="cannot be done"):
            asker.once(work)
    assert len(calls) == 1


def test_what_is_kept_is_not_made():
    context = context_of(knapsack())
    context.keep(len, 7)
    assert context.part(0.5).once(len) == 7


def test_a_part_has_its_share_and_the_same_flag():
    context = context_of(knapsack())
    part = context.part(0.25)
    assert part.budget.left <= 0.25 * context.budget.left + 1e-6 or np.isinf(context.budget.left)
    part.budget.stop("interrupt")
    assert context.budget.over == "interrupt"
