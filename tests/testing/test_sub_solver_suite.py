"""A sub-solver in one file passes the suite, and one that breaks a promise does not."""

from dataclasses import dataclass, replace

import pytest
import torch

import dovetail as dt
from dovetail.testing import SubSolverSuite


@dataclass(frozen=True)
class Wrapped:
    """Projected gradient, with answers that are changed on their way back."""

    change: object

    def refuses(self, block):
        return dt.ProjectedGradient().refuses(block)

    def solve(self, block, terms, start, budget):
        return self.change(block, start, dt.ProjectedGradient().solve(block, terms, start, budget))


def honest(block, start, answer):
    return answer


def stays(block, start, answer):
    return replace(answer, u=start)


def leaves_the_box(block, start, answer):
    return replace(answer, u=answer.u + 0.1)


def flatters(block, start, answer):
    return replace(answer, value=answer.value - 1.0)


def hides(block, start, answer):
    return replace(answer, violation=torch.zeros_like(answer.violation))


def mixes(block, start, answer):
    return replace(answer, u=answer.u + 1e-3 * len(answer.u))


@pytest.mark.parametrize(
    ("change", "test", "arguments"),
    [
        (stays, "test_finds_a_minimum_known_in_closed_form", []),
        (leaves_the_box, "test_fixed_inputs_do_not_move", []),
        (flatters, "test_goes_down_and_stays_inside_on_every_network", ["mlp"]),
        (hides, "test_rows_that_cannot_be_met_are_reported_not_hidden", []),
        (mixes, "test_samples_do_not_influence_each_other", []),
    ],
)
def test_a_fault_is_found(change, test, arguments):
    class Honest(SubSolverSuite):
        solver = Wrapped(honest)
        accurate = dt.ProjectedGradient(steps=300, lr=0.05)

    class Suite(SubSolverSuite):
        solver = Wrapped(change)

    getattr(Honest(), test)(*arguments)
    with pytest.raises(AssertionError):
        getattr(Suite(), test)(*arguments)
