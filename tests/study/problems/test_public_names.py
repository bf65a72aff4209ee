"""`dovetail.problems` and `dovetail_study.problems` are two names of the same modules."""

import pickle
from importlib import import_module

import pytest

import dovetail.problems
import dovetail_study.problems
from dovetail_study.problems import PROBLEMS
from dovetail_study.problems.water import Water


def test_the_package_is_the_same():
    assert dovetail.problems is dovetail_study.problems


@pytest.mark.parametrize("name", [*PROBLEMS, "data", "networks", "training"])
def test_every_module_is_the_same(name):
    public, own = (import_module(f"{package}.problems.{name}") for package in ("dovetail", "dovetail_study"))
    assert public is own is getattr(dovetail.problems, name)
    assert own.__name__ == own.__spec__.name == f"dovetail_study.problems.{name}"


def test_from_the_package():
    from dovetail.problems import water

    assert water.Water is Water


def test_from_a_module_of_it():
    from dovetail.problems.water import Water as imported

    assert imported is Water


def test_pickles_that_name_the_public_module_are_read():
    assert pickle.loads(b"cdovetail.problems.water\nWater\n.") is Water


def test_what_is_not_there_is_not_found():
    with pytest.raises(ModuleNotFoundError, match="dovetail.problems.nonsense"):
        import_module("dovetail.problems.nonsense")
