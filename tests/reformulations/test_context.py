"""A method on a reformulated problem: same incumbent, same clock, its own columns."""

import numpy as np
import pytest

from dovetail.reformulations.reformulated import Reformulated, context_of, reformulate
from dovetail.reformulations.tables import Tables
from dovetail.run.bound import Bound
from dovetail.structure.structure import structure_of
from tests import contexts
from tests.reformulations.test_reformulated import mixed, points


def lifted(reformulation):
    problem = mixed()
    context = contexts.context_of(problem)
    given = Reformulated.start(problem, context.once(structure_of).tight_box)
    rewritten = reformulate(given, (reformulation,))
    return context, rewritten, context_of(context, rewritten)


def test_what_is_offered_reaches_the_original():
    context, rewritten, inner = lifted(Tables())
    assert inner.incumbent.x is None and not inner.incumbent.proved
    x = next(points(context.problem))
    objective = inner.incumbent.offer(rewritten.lift(x), "test")
    assert objective == context.incumbent.objective == inner.incumbent.objective
    assert context.incumbent.x == pytest.approx(x)
    assert np.array_equal(inner.incumbent.x, rewritten.lift(context.incumbent.x))
    assert inner.incumbent.x is inner.incumbent.x  # lifted once, so that methods may compare by identity
    assert inner.incumbent.source == "test" and inner.incumbent.violation is context.incumbent.violation


def test_a_bound_is_shared_and_proves():
    context, rewritten, inner = lifted(Tables())
    x = next(points(context.problem))
    inner.incumbent.admit(rewritten.lift(x), "test")
    inner.incumbent.raise_bound(Bound(context.incumbent.objective))
    assert context.incumbent.bound == inner.incumbent.bound
    assert context.incumbent.proved and inner.incumbent.proved
