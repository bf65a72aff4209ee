"""Tables of parts: lazy, complete, and strict about names."""

import subprocess
import sys
from pathlib import PosixPath, PurePath

import pytest

import dovetail as dt
from dovetail.core.table import Part, Table, of_class
from dovetail.methods import METHODS
from dovetail.mip import ENGINES, engine_for
from dovetail.models import MODELS
from dovetail.nn import SUB_SOLVERS
from dovetail.predictors import PREDICTORS
from dovetail_study import EXPERIMENTS
from dovetail_study.problems import PROBLEMS
from tests.small import knapsack

TABLES = (METHODS, ENGINES, SUB_SOLVERS, MODELS, PREDICTORS, PROBLEMS, EXPERIMENTS)


def number(value="41"):
    return int(value) + 1


def small_table():
    return Table(
        "number",
        "numbers",
        Part("one", "tests.core.test_table:number", "the next one"),
        Part("other", lambda: 7, "always the same"),
        Part("far", "no.such.module:Thing", "never imported", library="no-such-library", extra="far"),
        otherwise="or count yourself",
    )


@pytest.fixture(autouse=True)
def _restored(monkeypatch):
    """What a test registers is forgotten after it."""
    for table in TABLES:
        monkeypatch.setattr(table, "_parts", dict(table._parts))


def test_a_part_is_imported_when_it_is_asked_for():
    table = small_table()
    assert list(table) == ["one", "other", "far"] and len(table) == 3 and "far" in table
    assert table.load("one")("9") == 10
    assert (table.make("one"), table.make("other")) == (42, 7)
    with pytest.raises(ModuleNotFoundError):
        table.load("far")


def test_an_unknown_name_lists_the_known_ones():
    expected = r"number 'two' is not known; choose one, other, far, or count yourself\."
    with pytest.raises(dt.OptionError, match=expected):
        small_table().make("two")


def test_a_part_says_what_it_needs():
    table = small_table()
    assert table["one"].availability() == ""
    assert table["far"].availability() == "not installed: pip install no-such-library"
    assert ENGINES["highs"].availability().startswith("highspy 1.")


@pytest.mark.parametrize(
    ("part", "culprit"),
    [
        (Part("one", number, ""), "number 'one' exists already"),
        (Part("", number, ""), "name of a number is ''"),
        (Part("new", 3, ""), "number 'new': 3 makes nothing"),
    ],
)
def test_what_cannot_be_registered(part, culprit):
    with pytest.raises(dt.OptionError, match=culprit):
        small_table().add(part)


def test_asking_for_the_tables_imports_no_part():
    modules = ["methods", "mip", "nn", "models", "predictors", "problems"]
    code = "import sys, dovetail_study; " + "; ".join(f"import dovetail.{name}" for name in modules)
    code += "; print([m for m in sys.modules if m in ('numpy', 'torch', 'scipy', 'highspy')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_classes_of_methods_and_sub_solvers_are_public():
    for table in (METHODS, SUB_SOLVERS):
        for name, module in table.public_names().items():
            assert getattr(dt, name).__module__ == module
            assert name in dt._PUBLIC
    assert "paper" not in METHODS.public_names()


def test_a_method_of_ones_own_has_a_name():
    dt.register_method("careful", lambda: dt.DualDecomposition(iterations=3), "three iterations")
    assert dt.solve(knapsack(), "careful", log=False).iterations <= 3
    with pytest.raises(dt.OptionError, match="'careful' exists already"):
        dt.register_method("careful", dt.Auto)
    with pytest.raises(dt.OptionError, match="method 'carefull' is not known; choose auto, .*careful, or"):
        dt.solve(knapsack(), "carefull", log=False)


class Counting:
    """An engine of the user's own that lets another one work."""

    name = "counting"

    def __init__(self):
        self.loaded, self._inner = 0, ENGINES.make("highs")

    def refuses(self, mip, columns):
        return "it has more than 99 columns" if mip.n_columns > 99 else None

    def load(self, mip, columns, *, seed=0, threads=1):
        self.loaded += 1
        return self._inner.load(mip, columns, seed=seed, threads=threads)


def test_an_engine_of_ones_own_is_passed_as_an_object_or_by_name():
    engine = Counting()
    result = dt.solve(knapsack(), dt.DualDecomposition(engine=engine, iterations=5), log=False)
    assert result.objective == -4.0 and engine.loaded == 1
    made = []
    dt.register_engine("counting", lambda: made.append(Counting()) or made[-1], "counts")
    dt.solve(knapsack(), dt.DualDecomposition(engine="counting", iterations=1), log=False)
    assert sum(engine.loaded for engine in made) == 1


def test_an_engine_of_ones_own_may_refuse():
    mip = dt.Mip(cost=[1.0] * 100, lower=0.0, upper=1.0)
    with pytest.raises(dt.UnsupportedError, match="engine 'counting' cannot take .* more than 99 columns"):
        engine_for(Counting(), mip, [])


@pytest.mark.parametrize("engine", [3, None, Counting])
def test_what_is_no_engine_is_refused(engine):
    with pytest.raises(dt.OptionError, match="DualDecomposition: engine is .*HighsEngine"):
        dt.DualDecomposition(engine=engine)


def test_classes_and_those_derived_from_them():
    is_path = of_class("nothing.at.All", f"{PurePath.__module__}.PurePath")
    assert is_path(PosixPath("a")) and is_path(PurePath("a"))
    assert not is_path("a") and not is_path(PurePath)  # a class is not one of its objects


def test_the_whole_name_counts():
    class PurePath:
        pass

    assert not of_class("pathlib.PurePath")(PurePath())
