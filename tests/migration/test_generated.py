"""Programs in the peers' styles, migrated and run: right or refused in clear words, never silently wrong."""

import sys

import numpy as np
import pytest

from dovetail_peers.migration.migrate import migrate
from tests.conftest import FULL
from tests.migration import generated

COUNT = 34 if FULL else 4
"""Of each peer."""
CLEAR = "dovetail.solve"
"""What the words of a refusal name."""
POINTS = np.array([[a, b] for a in range(4) for b in range(4 - a)], dtype=float)


def optimum(program):
    """By enumeration."""
    if program.peer == "omlt":
        inner = np.maximum(POINTS @ [[1.0, -1.0], [0.5, 1.0]] + [-1.0, 0.5], 0.0)
        y = inner @ [-1.0, 0.75]
    else:
        kind, fitted = generated.PREDICTORS[program.pieces[0]]
        space = {}
        exec(f"from {generated.MODULES[program.pieces[0]]} import {kind}\n{generated.GRID}", space)
        y = np.ravel(eval(fitted, space).predict(POINTS))
    return float(np.max(y + 0.5 * POINTS[:, 0]))


def outcome(program, text):
    """What comes of a program: "right", "refused" or "wrong", and what it says."""
    said, before = [], sys.unraisablehook
    sys.unraisablehook = lambda raised: said.append(str(raised.exc_value))  # PySCIPOpt prints and goes on
    space = {"__name__": "program"}
    try:
        exec(compile(text, str(program), "exec"), space)
    except Exception as error:
        said.insert(0, f"{type(error).__name__}: {error}")
        return ("refused" if CLEAR in " ".join(said) else "wrong"), " ".join(said)
    finally:
        sys.unraisablehook = before
    right = abs(space["answer"] - optimum(program)) <= 1e-5
    return ("right" if right else "wrong"), f"{space['answer']} instead of {optimum(program)}"


PROGRAMS = list(generated.programs(COUNT, seed=0))
NOT_TO_BE_SEEN = {"bound", "by getattr", "methodcaller", "a copy"}
"""Ways to solve that no reading of the syntax finds: they are refused when the program runs."""


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_right_or_refused(program):
    done = migrate(program.text, str(program))
    found, said = outcome(program, done.text)
    assert found != "wrong", f"{said}\n{done.text}"
    if not NOT_TO_BE_SEEN & set(program.pieces):
        assert found == "right", f"{said}\n{done.text}"
    if found == "refused":
        assert done.left  # and its owner was told


@pytest.mark.parametrize("program", [each for each in PROGRAMS if each.peer != "omlt"], ids=str)
def test_the_programs_are_programs_of_the_peers(program):
    found, said = outcome(program, program.text)
    assert found == "right", said
