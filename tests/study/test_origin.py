"""A reader finds the lines: recipes choose exactly what was used, captions name whoever made it."""

import re

from dovetail_study.experiment import SEEDS
from dovetail_study.origin import caption, commits, mixture, places, recipe
from tests.study.made_up import row

ROWS = [
    row("e1", method, seed=seed, network=network, n=n, budgets="total")
    for method in ("paper", "auto")
    for network in ("2x16", "4x32")
    for n in (25, 50)
    for seed in SEEDS
]


def follow(said, rows):
    """What a reader does with a recipe."""
    experiment, _, rest = said.partition(": ")
    count, *parts = rest.split("; ")
    left = [each for each in rows if each["experiment"] == experiment]
    for part in parts:
        name, _, values = part.partition(" ")
        left = [each for each in left if str(each.get(name, "absent")) in values.split(" or ")]
    return int(re.match(r"\d+", count).group()), left


def test_a_recipe_chooses_the_lines_that_were_used():
    used = [each for each in ROWS if each["method"] == "paper" and each["n"] == 25]
    said = recipe(used, ROWS)
    assert said == "e1: 10 lines; method paper; n 25"
    assert follow(said, ROWS) == (10, used)


def test_fields_that_leave_nothing_out_are_not_named():
    assert recipe(ROWS, ROWS) == "e1: 40 lines"
    assert recipe([], ROWS) == "none"


def test_lines_that_are_no_full_grid_are_counted_both_ways():
    used = [each for each in ROWS if (each["network"], each["n"]) in (("2x16", 25), ("4x32", 50))]
    assert recipe(used, ROWS) == "e1: 20 of 40 lines"


def test_a_field_that_is_absent_is_said_to_be():
    old = [{k: v for k, v in ROWS[0].items() if k != "budgets"}]
    assert recipe(old, [*old, ROWS[1]]) == "e1: 1 line; budgets absent"


def test_one_origin_is_said_once():
    assert caption(ROWS) == (
        "*40 lines. All of commit abc1234 on x86_64, 16 cores, 1 thread a run, 4 at a time.*"
    )
    assert caption([]) == ""


def test_several_commits_and_machines_are_named_with_their_shares():
    rows = [*ROWS[:3], {**ROWS[3], "commit": "def5678"}]
    said = caption(rows)
    assert "Rows of several commits: 3 of commit abc1234 on x86_64, 16 cores" in said
    assert "1 of commit def5678 on x86_64, 16 cores" in said
    assert commits(rows) == ["abc1234", "def5678"]
    gpu = {**ROWS[0], "device": "NVIDIA H200"}
    assert "Rows of several machines" in caption([ROWS[1], gpu])
    assert "Rows of one machine, not equally full" in caption([ROWS[1], {**ROWS[0], "shared": 9}])
    assert "commit abc1234 on NVIDIA H200 (x86_64, 16 cores), 1 thread a run, 4 at a time" in places([gpu])


def test_seeds_that_are_not_the_papers_five_are_named_with_whose_cells_have_them():
    few = [each for each in ROWS if each["method"] == "paper" or each["seed"] == SEEDS[0]]
    assert "Fewer than the paper's five seeds: 42 for auto." in caption(few)
    fewer = [each for each in few if each["network"] == "2x16" or each["seed"] == SEEDS[0]]
    assert "Fewer than the paper's five seeds: 42 for paper (2 of 4 cells), auto." in caption(fewer)
    drawn = [{**ROWS[0], "family": "whole", "rho": seed / 7, "seed": seed} for seed in SEEDS]
    assert "Fewer" not in caption(drawn)  # rho is the problem's own there, and no choice
    more = caption([*ROWS, {**ROWS[0], "seed": 7}])
    assert "Fewer" not in more
    assert "Seeds that are not the paper's: 7." in more


def test_a_verdict_of_several_machines_says_so():
    assert mixture(ROWS) == ""
    gpu = {**ROWS[0], "device": "NVIDIA H200"}
    assert mixture([*ROWS[:2], gpu]) == (
        " [2 lines of x86_64, 16 cores, 1 lines of NVIDIA H200 (x86_64, 16 cores)]"
    )
