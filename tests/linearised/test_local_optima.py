"""Local optima: the same one is known again, another is new."""

import numpy as np

from dovetail.linearised.descent import Iterate
from dovetail.methods.sequential_linear import LocalOptima


def ended(value: float, feasible: bool = True) -> Iterate:
    return Iterate(np.zeros(1), value, feasible)


def test_an_optimum_is_new_once():
    optima = LocalOptima()
    assert [optima.add(ended(value)) for value in (3.0, 3.0 + 1e-7, 2.0, 3.0 - 1e-7, 2.0001)] == [
        True, False, True, False, True,
    ]  # fmt: skip


def test_a_descent_that_found_no_point_teaches_nothing():
    assert not LocalOptima().add(ended(1.0, feasible=False))
