"""`dovetail.compat` and `dovetail_peers.compat` are two names of the same modules."""

import pickle
import subprocess
import sys
from importlib import import_module

import pytest

import dovetail.compat
import dovetail_peers.compat
from dovetail_peers.compat.omlt.definition import OffsetScaling
from tests.conftest import volume

FILE, MADE = "omlt.block", "gurobi_ml.sklearn.pipeline"
"""A module that is a file, and one that is made from a table."""


@pytest.mark.parametrize("name", ["gurobi_ml", "pyscipopt_ml", "omlt", FILE, MADE])
def test_a_module_is_the_same_by_either_name(name):
    assert dovetail.compat is dovetail_peers.compat
    assert import_module(f"dovetail.compat.{name}") is import_module(f"dovetail_peers.compat.{name}")


@volume("a process and its imports")
def test_the_public_name_may_come_first():
    code = "; ".join(
        f"import dovetail.compat.{name} as public, dovetail_peers.compat.{name} as own; print(public is own)"
        for name in ("modules", MADE)  # a file that imports neither torch nor Pyomo
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (said.returncode, said.stdout) == (0, "True\nTrue\n"), said.stderr


def test_a_file_that_was_pickled_by_the_public_name_is_read():
    assert pickle.loads(b"cdovetail.compat.omlt\nOffsetScaling\n.") is OffsetScaling


@pytest.mark.parametrize("name", ["nonsense", "omlt.nonsense", "gurobi_ml.sklearn.nonsense"])
def test_a_module_that_is_not_there(name):
    with pytest.raises(ModuleNotFoundError, match=f"dovetail.compat.{name}"):
        import_module(f"dovetail.compat.{name}")
