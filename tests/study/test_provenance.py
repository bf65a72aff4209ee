"""Which commit a row is of: git's word where it knows the code, else what was given, else the version."""

import shutil
import subprocess

import pytest

import dovetail as dt
from dovetail_study.ledger import VARIABLE, commit

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture(autouse=True)
def asked_anew(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    commit.cache_clear()
    yield
    commit.cache_clear()


def git(folder, *arguments):
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    done = subprocess.run(
        ["git", "-C", str(folder), *who, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def package(tmp_path):
    """A package in a repository of its own, and something else beside it."""
    folder = tmp_path / "src" / "package"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("a = 1\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    return folder


def test_a_checkout_names_its_commit(package):
    assert commit(package) == git(package, "rev-parse", "HEAD")


@pytest.mark.parametrize("name", ["__init__.py", "new.py"])
def test_changed_code_has_a_plus(package, name):
    (package / name).write_text("a = 2\n")
    assert commit(package) == git(package, "rev-parse", "HEAD") + "+"


def test_a_change_in_either_package_counts(package):
    study = package.parent / "study"
    study.mkdir()
    (study / "__init__.py").write_text("b = 1\n")
    git(package, "add", "../study")
    git(package, "commit", "-qm", "two")
    assert commit(package, study) == git(package, "rev-parse", "HEAD")
    commit.cache_clear()
    (study / "__init__.py").write_text("b = 2\n")
    assert commit(package, study) == git(package, "rev-parse", "HEAD") + "+"


def test_results_beside_the_code_are_no_change_of_it(package):
    (package.parent / "results.jsonl").write_text("{}\n")
    assert not commit(package).endswith("+")


def test_a_wheel_inside_somebody_elses_repository_has_its_version(package):
    installed = package.parent / "site-packages" / "dovetail"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("")
    assert commit(installed) == dt.__version__


def test_without_git_the_version_stands_for_the_commit_unless_it_was_given(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit(tmp_path) == dt.__version__
    commit.cache_clear()
    monkeypatch.setenv(VARIABLE, "abc")
    assert commit(tmp_path) == "abc"


def test_git_is_believed_before_what_was_given(package, monkeypatch):
    monkeypatch.setenv(VARIABLE, "abc")
    assert commit(package) == git(package, "rev-parse", "HEAD")
