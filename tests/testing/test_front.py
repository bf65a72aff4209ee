"""`dovetail.testing` costs nothing until it is used, and shows what it compared."""

import subprocess
import sys

import pytest

import dovetail.testing
from tests.conftest import volume


def test_importing_it_imports_neither_pytest_nor_torch():
    code = (
        "import sys, dovetail.testing; print([m for m in ('pytest', 'torch', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_its_public_names():
    for name in dovetail.testing.__all__:
        assert getattr(dovetail.testing, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        dovetail.testing.Nonsense  # noqa: B018


@volume("a process that runs pytest")
def test_a_failing_suite_shows_the_values(tmp_path):
    """Asserts in the suites are rewritten by pytest like those in a test file."""
    (tmp_path / "test_mine.py").write_text(
        "from dovetail.mip.highs import HighsEngine\n"
        "from dovetail.testing import EngineSuite\n"
        "class Mine(HighsEngine):\n"
        "    def refuses(self, mip, columns):\n"
        "        return 'on strike'\n"
        "class TestMine(EngineSuite):\n"
        "    engine = Mine()\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "no_time"]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert "assert 'on strike' is None" in done.stdout
