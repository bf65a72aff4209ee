"""The comparison of tree ensembles: an instance that both sides solve comes out the same."""

import pytest
from benchmarks.tree_runs import Asked, answered


def test_both_sides_say_the_same():
    pytest.importorskip("pyscipopt_ml")
    ours, theirs = (answered(Asked("diet", 2, 2, 0, 60.0, who)) for who in (0, None))
    assert ours.proved and theirs.proved and "otherwise" not in theirs.note
    assert ours.objective == pytest.approx(ours.bound, rel=1e-4)
    assert theirs.objective == pytest.approx(ours.objective, rel=1e-4)


def test_the_most_is_the_most():
    """A maximum, in the user's sense."""
    answer = answered(Asked("plant", 1, 2, 0, 60.0, 0))
    assert answer.proved and answer.objective == pytest.approx(answer.bound, rel=1e-4)
