"""The plan: which phases a problem gets, in which order, and that the documentation says so."""

from pathlib import Path

import pytest

from dovetail.methods.auto import in_words
from dovetail.methods.phases import (
    MANY_BLOCKS,
    MANY_COMPONENTS,
    MANY_INTEGERS,
    PHASES,
    Facts,
    as_markdown,
    planned,
)

NOTHING = {
    "blocks": 0, "integers": 0, "choices": 0, "components": 1, "priced": False, "joint_inputs": 0,
    "certified": False, "small_networks": False, "exact_blocks": 0, "unstable": 10**6,
    "tree_samples": 0, "cuts": 0, "tree_components": 0, "curves": 0, "only_curves": False,
}  # fmt: skip


def names_of(**facts):
    return [phase.name for phase in planned(Facts(**{**NOTHING, **facts}))]


@pytest.mark.parametrize(
    ("facts", "names"),
    [
        ({}, ["first descents", "last descents"]),
        ({"unstable": 10, "integers": 5}, ["first descents", "early exact MIP", "last descents"]),
        ({"unstable": 200}, ["first descents", "middle descents", "late exact MIP", "last descents"]),
        (
            {"integers": 5, "choices": 5},
            [
                "first descents",
                "first integer search",
                "integer search",
                "last integer search",
                "last descents",
            ],
        ),
        (
            {"integers": 9, "components": 9, "priced": True, "unstable": 200},
            ["first descents", "column generation", "late exact MIP", "last descents"],
        ),
        ({"components": MANY_COMPONENTS + 1, "priced": True}, ["column generation", "last descents"]),
        ({"integers": MANY_INTEGERS + 1}, ["relaxation", "neighbourhoods"]),
        ({"joint_inputs": 5}, ["first descents", "proofs in turn", "last descents"]),
        (
            {"tree_samples": 1, "cuts": 9},
            ["cell descent", "cell branching", "last cell descent"],
        ),
        (
            {"tree_samples": 50, "cuts": 10**6},
            ["cell descent", "cell branching", "last cell descent"],
        ),
        (
            {"tree_samples": 50, "cuts": 10**6, "tree_components": 50},
            ["first cell descent", "cell columns", "cell descent", "cell branching", "last cell descent"],
        ),
        ({"tree_samples": 1}, ["cell descent", "last cell descent"]),  # exact=False
        ({"curves": 3}, ["first descents", "quadratic MIP", "last descents"]),
        ({"curves": 3, "only_curves": True}, ["first descents", "quadratic program", "last descents"]),
        (
            {"trees_beside_others": True, "curves": 3, "only_curves": True},
            ["first descents", "cell branching", "last descents"],
        ),
        ({"branched": True}, ["first descents", "branching", "last descents"]),
        (
            {"integers": 9, "components": 9, "priced": True, "certified": True},
            ["first descents", "column generation", "certified prices", "last descents"],
        ),
        (
            {"integers": 9, "components": 9, "priced": True, "certified": True, "on_gpu": True},
            ["first descents", "column generation", "certified prices", "last descents"],
        ),
        (
            {"components": 5, "exact_blocks": 5, "unstable": 200},
            ["first descents", "middle descents", "block prices", "last descents"],
        ),
        (
            {"blocks": MANY_BLOCKS + 1, "components": MANY_BLOCKS + 1, "priced": True},
            ["many blocks", "certified template prices"],
        ),
        (
            {"blocks": 400, "components": 400, "priced": True},
            ["template pricing", "column generation", "last descents"],
        ),
        (
            {"integers": MANY_INTEGERS + 1, "branched": True},
            ["relaxation", "branching", "neighbourhoods"],
        ),
    ],
)
def test_which_phases_apply(facts, names):
    assert names_of(**facts) == names


def test_the_documentation_has_the_table():
    page = Path(__file__).parents[2] / "docs" / "auto.md"
    assert as_markdown() in page.read_text()


def test_every_line_of_the_log_can_be_filled_in():
    for phase in PHASES:
        assert "{" not in in_words(phase.why, Facts(**NOTHING))


def test_shares_are_shares():
    assert all(0.0 < phase.share <= 1.0 for phase in PHASES)
