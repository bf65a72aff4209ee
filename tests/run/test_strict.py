"""Strict mode is asked for by the environment, at any time; the suite runs in it."""

import pytest

from dovetail.run.strict import VARIABLE, strict


@pytest.mark.parametrize(("value", "said"), [(None, False), ("", False), ("0", False), ("1", True)])
def test_the_environment_decides(monkeypatch, value, said):
    assert strict()
    monkeypatch.delenv(VARIABLE) if value is None else monkeypatch.setenv(VARIABLE, value)
    assert strict() is said
