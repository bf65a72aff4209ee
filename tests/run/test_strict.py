"""Strict mode is chosen by the environment, at any time."""

import pytest

from dovetail.run.failures import VARIABLE, strict


@pytest.mark.parametrize(("value", "chosen"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_the_environment_chooses(value, chosen, monkeypatch):
    monkeypatch.setenv(VARIABLE, value)
    assert strict() is chosen


def test_it_is_off_unless_it_is_chosen(monkeypatch):
    monkeypatch.delenv(VARIABLE)
    assert not strict()
