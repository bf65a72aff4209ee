"""Errors: one family, each also the built-in that its name suggests."""

import pytest

import dovetail as dt
from dovetail.core import errors


@pytest.mark.parametrize(
    ("error", "like"),
    [
        (dt.ModelError, ValueError),
        (dt.PredictorError, ValueError),
        (dt.OptionError, ValueError),
        (dt.UnsupportedError, ValueError),
        (dt.EngineError, RuntimeError),
        (dt.MissingDependencyError, ImportError),
    ],
)
def test_each_is_of_the_family_and_like_a_built_in(error, like):
    assert issubclass(error, dt.DovetailError)
    assert issubclass(error, like)


def test_all_of_them_are_public():
    own = {name for name, thing in vars(errors).items() if isinstance(thing, type)}
    assert own <= set(dt._PUBLIC)
