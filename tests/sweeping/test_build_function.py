"""What builds the problems: found by other processes, and fit for every case, or refused before anything."""

import sys
from functools import partial
from types import SimpleNamespace

import pytest

import dovetail as dt
from dovetail.sweeping.sweep import name_of
from tests.sweeping.builds import nothing


def test_what_other_processes_find_has_a_name():
    for build in (nothing, partial(nothing, b=2)):
        assert name_of(build, [{"a": 1}]) == "nothing"


def test_what_other_processes_cannot_find_is_refused(monkeypatch):
    def local(a):
        return a

    for build in (local, lambda a: a):
        with pytest.raises(dt.OptionError, match=r"cannot be sent .* it has to be a function of a file"):
            name_of(build, [{"a": 1}])
    with pytest.raises(dt.OptionError, match="build is 3"):
        name_of(3, [{}])
    typed = SimpleNamespace(typed=local)  # as a notebook or `python -c` has it: no file, no spec
    monkeypatch.setitem(sys.modules, "__main__", typed)
    monkeypatch.setattr(local, "__module__", "__main__")
    monkeypatch.setattr(local, "__qualname__", "typed")
    with pytest.raises(dt.OptionError, match="build 'typed' is not in a file"):
        name_of(local, [{"a": 1}])


@pytest.mark.parametrize("case", [{}, {"a": 1, "c": 2}])
def test_cases_it_does_not_take_are_refused(case):
    with pytest.raises(dt.OptionError, match="build 'nothing' does not take case 1 of grid"):
        name_of(nothing, [{"a": 1}, case])


def test_functions_that_do_not_tell_what_they_take_are_taken():
    assert name_of(max, [{"a": 1}]) == "max"
