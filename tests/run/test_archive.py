"""Points on the way: kept only on request, in the columns of the problem that wants them."""

import numpy as np

from dovetail.run.context import Archive


def test_points_are_kept_only_on_request():
    archive = Archive()
    archive.add(np.zeros(2))
    assert archive.points == []
    archive.keeps = True
    archive.add(np.ones(2))
    assert np.array_equal(archive.points, [[1.0, 1.0]])


def test_through_two_problems():
    archive = Archive()
    inner = archive.restricted(lambda z: z[:3]).restricted(lambda z: z[:4])
    assert not inner.keeps
    archive.keeps = True
    assert inner.keeps
    inner.add(np.arange(5.0))
    assert np.array_equal(archive.points, [[0.0, 1.0, 2.0]])
    assert inner.points == []
