"""Options: a value of the wrong kind is refused where it is given, by name."""

from types import SimpleNamespace

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.options import (
    require_choice,
    require_count,
    require_flags,
    require_methods,
    require_number,
)


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


def test_a_message_says_what_may_be_given():
    with pytest.raises(dt.OptionError, match=r"rho is 0; give a finite number > 0"):
        require_number("rho", 0, above=0.0)
    with pytest.raises(dt.OptionError, match=r"share is 1; give a finite number >= 0 and < 1"):
        require_number("share", 1, at_least=0.0, below=1.0)
    with pytest.raises(dt.OptionError, match="seed is -1; give a whole number, at least 0"):
        require_count("seed", -1, at_least=0)
    with pytest.raises(dt.OptionError, match="rule is 'x'; choose adam, gradient"):
        require_choice("rule", "x", ("adam", "gradient"))


@pytest.mark.parametrize("wrong", [True, None, "1", float("nan"), float("inf")])
def test_what_is_no_number(wrong):
    with pytest.raises(dt.OptionError, match="rho"):
        require_number("rho", wrong)


def test_numbers_of_numpy_are_numbers():
    require_number("rho", np.float32(3.0), above=0.0)
    require_count("seed", np.int64(2), at_least=0)
    require_flags("options", SimpleNamespace(log=np.bool_(True), scaled=False), "log", "scaled")
    with pytest.raises(dt.OptionError, match="options: log is 1"):
        require_flags("options", SimpleNamespace(log=1), "log")


def test_a_class_is_no_object_of_it():
    require_methods("nn_solver", dt.LogBarrier(), ("solve",), "dt.LogBarrier()")
    with pytest.raises(dt.OptionError, match=r"give an object such as dt.LogBarrier\(\)"):
        require_methods("nn_solver", dt.LogBarrier, ("solve",), "dt.LogBarrier()")
