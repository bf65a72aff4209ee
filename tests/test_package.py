"""The built wheel holds everything and runs outside the clone."""

import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from dovetail.cli.init_command import TEXTS
from tests.conftest import FULL

ROOT = Path(__file__).parent.parent


BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
INSTALL = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile", "--target"]


@pytest.mark.long
def test_the_wheel_holds_everything_and_runs_outside_the_clone(tmp_path):
    """It is run at full volume: that takes pip and a process."""
    wheels, site, source = tmp_path / "wheels", tmp_path / "site", ROOT / "src"
    subprocess.run([sys.executable, "-c", BUILD, str(wheels)], check=True, cwd=ROOT, capture_output=True)
    (wheel,) = wheels.glob("dovetail-*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    wanted = [path for path in source.rglob("*") if path.suffix in (".py", ".html", ".css", ".js", ".typed")]
    assert {str(path.relative_to(source)) for path in wanted} <= held
    assert {f"dovetail/problem_file/example/{name}" for name in TEXTS} <= held
    if not FULL:
        return
    subprocess.run([*INSTALL, str(site), str(wheel)], check=True, capture_output=True)
    program = f"""
import sys
sys.path.insert(0, {str(site)!r})
import dovetail as dt, numpy as np, torch
assert dt.__file__.startswith({str(site)!r}), dt.__file__
problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], lower=[-1.0, -np.inf], upper=[1.0, np.inf]))
problem.add_predictor(torch.nn.Linear(1, 1), [0], [1])
result = dt.solve(problem, log=False)
assert dt.check(problem, result.x).within()
assert "</html>" in result.report("page.html").read_text()
print("fine")
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.strip() == "fine", done.stderr


def test_the_extra_all_is_all_of_them():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (every,) = extras["all"]
    assert set(re.findall(r"\w+", every)) == {"dovetail", *extras} - {"all", "docs", "dev", "full"}


def test_the_page_on_installing_names_every_extra():
    page = (ROOT / "docs" / "install.md").read_text()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert [extra for extra in extras if f"`{extra}`" not in page] == []


def test_no_cuda_package_came_along():
    installed = {distribution.name.lower() for distribution in metadata.distributions()}
    assert "torch" in installed
    assert not [name for name in installed if "nvidia" in name]
