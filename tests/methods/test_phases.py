"""Which parts a problem gets, in which order, and that the documentation says so."""

from pathlib import Path

import pytest

from dovetail.methods.auto import in_words
from dovetail.methods.phases import (
    MANY_BLOCKS,
    MANY_INTEGERS,
    PHASES,
    Facts,
    as_markdown,
)

NOTHING = {
    "blocks": 0, "integers": 0, "choices": 0, "unstable": 10**6, "branched": False,
    "tree_samples": 0, "tree_components": 0, "curves": 0,
}  # fmt: skip


LAST = ["neighbourhoods"]
MANY = [phase.name for phase in PHASES if phase.of_blocks]


def names_of(**facts):
    known = Facts(**{**NOTHING, **facts})
    return [phase.name for phase in PHASES if phase.suits(known)]


@pytest.mark.parametrize(
    ("facts", "names"),
    [
        ({}, ["descents", *LAST]),
        ({"unstable": 10, "integers": 5}, ["descents", "exact MIP", *LAST]),
        ({"integers": 5, "choices": 5}, ["descents", "integer search", *LAST]),
        ({"blocks": 5, "unstable": 200}, ["block prices", "descents", "exact MIP", *LAST]),
        ({"integers": MANY_INTEGERS + 1, "branched": True}, ["relaxation", "branching"]),
        ({"unstable": 10, "branched": True}, ["descents", "branching", "exact MIP", *LAST]),
        ({"tree_samples": 50, "branched": True}, ["cell descent", "branching"]),
        (
            {"tree_samples": 50, "branched": True, "tree_components": 50},
            ["cell descent", "cell columns", "branching"],
        ),
        ({"tree_samples": 1}, ["cell descent"]),  # exact=False
        ({"curves": 3}, ["descents", "quadratic MIP", *LAST]),
        ({"trees_beside_others": True, "curves": 3, "branched": True}, ["descents", "branching", *LAST]),
        ({"blocks": MANY_BLOCKS + 1, "branched": True}, MANY),
    ],
)
def test_which_parts_apply(facts, names):
    assert names_of(**facts) == names


def test_the_documentation_has_the_table():
    page = Path(__file__).parents[2] / "docs" / "auto.md"
    assert as_markdown() in page.read_text()


def test_every_line_of_the_log_can_be_filled_in():
    for phase in PHASES:
        assert "{" not in in_words(phase.why, Facts(**NOTHING))
