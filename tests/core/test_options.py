"""Options: a value of the wrong kind is refused where it is given, by name."""

import pytest

import dovetail as dt


@pytest.mark.parametrize(
    "make",
    [
        lambda: dt.DualDecomposition(rho=None),
        lambda: dt.DualDecomposition(iterations=2.5),
        lambda: dt.DualDecomposition(mip_gap=float("nan")),
        lambda: dt.DualDecomposition(patience="x"),
        lambda: dt.DualDecomposition(engine="glpk"),
        lambda: dt.DualDecomposition(nn_solver="barrier"),
        lambda: dt.DualDecomposition(nn_solver=dt.LogBarrier),
        lambda: dt.DualDecomposition(penalty=None),
        lambda: dt.BalancedPenalty(factor=float("nan")),
        lambda: dt.Mip([1.0], offset="a"),
        lambda: dt.Mip([1.0], names=5),
        lambda: dt.Mip([1.0, 1.0], names="ab"),
        lambda: dt.Mip([1.0], [[1j]], 0.0, 1.0),
        lambda: dt.read(None),
    ],
)
def test_options_of_the_wrong_kind(make):
    with pytest.raises(dt.DovetailError):
        make()
