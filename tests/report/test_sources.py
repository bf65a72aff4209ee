"""Every source that a method gives its points and bounds is explained, also in the reference of `Result`."""

import ast
from pathlib import Path

import pytest

from dovetail.report.gains import FOUND, PROVED, ROWS_ONLY, found_by, proved_by

ROOT = Path(__file__).parents[2]
OFFERS = {"offer", "_offer", "admit", "descend", "run", "_sub_mip"}
"""Calls of methods whose text argument is the source of a point."""


def files(*folders):
    """The files of these folders of the library, and the methods of the study."""
    for folder in (*(f"dovetail/{folder}" for folder in folders), "dovetail_study/big_m"):
        yield from (ROOT / "src" / folder).rglob("*.py")
    yield ROOT / "src" / "dovetail_study" / "single_step_gradient.py"


def texts_given_to(calls):
    """The text literals among the arguments of these calls, in the files that search."""
    for path in files("methods", "linearised", "solving"):
        for node in ast.walk(ast.parse(path.read_text())):
            called = getattr(node, "func", None)
            if getattr(called, "attr", getattr(called, "id", "")) in calls:
                for given in node.args[1:]:
                    if isinstance(given, ast.Constant) and isinstance(given.value, str):
                        yield given.value


def texts_called_source():
    """Those of methods that are told, or say of themselves, what their points and bounds are to be called."""
    for path in files("methods"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (isinstance(node, ast.keyword) and node.arg == "source") or (
                isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "source"
            ):
                given = node.value
            else:
                continue
            if isinstance(given, ast.Constant) and isinstance(given.value, str):
                yield given.value


def test_every_source_that_a_method_is_told_has_words():
    given = set(texts_called_source())
    assert {"exact", "tables", "splits"} <= given
    assert given <= FOUND.keys() and given <= PROVED.keys()


def test_every_source_of_a_point_has_words():
    given = set(texts_given_to(OFFERS)) - {"clear"}  # of an incumbent of its own
    assert {"x", "u", "lns", "switch"} <= given
    assert given <= FOUND.keys()


def test_every_source_of_a_bound_has_words():
    given = set(texts_given_to({"Bound"}))
    assert {"prices", "scip"} <= given
    assert given <= PROVED.keys()


def test_bounds_of_the_rows_alone_say_so():
    for source in ROWS_ONLY:
        assert "predictors ignored" in proved_by(source)


@pytest.mark.parametrize("words", [found_by, proved_by])
def test_somebody_else_s_source_stands_for_itself(words):
    assert words("ant colony") == "ant colony"


@pytest.mark.parametrize("table", [FOUND, PROVED])
def test_the_documentation_has_them_all(table):
    text = (ROOT / "src" / "dovetail" / "run" / "result.py").read_text()
    for source, words in table.items():
        assert f"| `{source}` | {words} |" in text, source
