"""The plan: which phases a problem gets, in which order, and that the documentation says so."""

from pathlib import Path

import pytest

from dovetail.methods.auto import in_words
from dovetail.methods.facts import MANY_BLOCKS, MANY_COMPONENTS, MANY_INTEGERS, Facts
from dovetail.methods.phases import PHASES, as_markdown, planned

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
        ({}, ["first search", "last search"]),
        ({"unstable": 10, "integers": 5}, ["first search", "early exact MIP", "last search"]),
        ({"unstable": 200}, ["first search", "search", "late exact MIP", "last search"]),
        (
            {"integers": 5, "choices": 5},
            ["first search", "search", "last search"],
        ),
        (
            {"integers": 9, "components": 9, "priced": True, "unstable": 200},
            ["first search", "column generation", "late exact MIP", "last search"],
        ),
        ({"components": MANY_COMPONENTS + 1, "priced": True}, ["column generation", "last search"]),
        ({"integers": MANY_INTEGERS + 1}, ["first search", "last search"]),
        ({"joint_inputs": 5}, ["first search", "proofs in turn", "last search"]),
        (
            {"tree_samples": 1, "cuts": 9},
            ["first search", "cell branching", "last search"],
        ),
        (
            {"tree_samples": 50, "cuts": 10**6},
            ["first search", "cell branching", "last search"],
        ),
        (
            {"tree_samples": 50, "cuts": 10**6, "tree_components": 50},
            ["first search", "cell columns", "cell branching", "last search"],
        ),
        ({"tree_samples": 1}, ["first search", "last search"]),  # exact=False
        ({"curves": 3}, ["first search", "quadratic MIP", "last search"]),
        ({"curves": 3, "only_curves": True}, ["first search", "quadratic program", "last search"]),
        (
            {"trees_beside_others": True, "curves": 3, "only_curves": True},
            ["first search", "cell branching", "last search"],
        ),
        ({"branched": True}, ["first search", "branching", "last search"]),
        (
            {"integers": 9, "components": 9, "priced": True, "certified": True},
            ["first search", "column generation", "certified prices", "last search"],
        ),
        (
            {"integers": 9, "components": 9, "priced": True, "certified": True, "on_gpu": True},
            ["first search", "column generation", "certified prices", "last search"],
        ),
        (
            {"components": 5, "exact_blocks": 5, "unstable": 200},
            ["first search", "search", "block prices", "last search"],
        ),
        (
            {"blocks": MANY_BLOCKS + 1, "components": MANY_BLOCKS + 1, "priced": True},
            ["many blocks", "certified template prices"],
        ),
        (
            {"blocks": 400, "components": 400, "priced": True},
            ["template pricing", "column generation", "last search"],
        ),
        (
            {"integers": MANY_INTEGERS + 1, "branched": True},
            ["first search", "branching", "last search"],
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
