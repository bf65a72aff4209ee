"""What is reachable: the best verified point of any method, and who may call it so."""

import math

import pytest

from dovetail_study.statistics import BestKnown, Reachable, divided, pairs
from tests.study.made_up import row, scip

CELL = {"network": "2x16", "n": 20, "budgets": "total"}


def run(method, potable, **fields):
    return row("e3", method, potable=potable, **{**CELL, **fields})


def test_it_is_the_best_of_any_method_on_the_same_instance():
    rows = [run("paper", 8), run("auto", 10), run("ssg", 4), run("auto", 15, seed=7), run("auto", 19, n=40)]
    reachable = Reachable(rows)
    assert reachable.of(rows[0]) == BestKnown(10.0, "auto", proved=False, ahead=True, bound=math.inf)
    assert reachable.shares(rows[:3]) == [0.8, 1.0, 0.4]
    assert reachable.values(rows[:2]) == [10.0, 10.0]


@pytest.mark.parametrize("other", [{"seed": 7}, {"n": 40}, {"network": "4x32"}, {"budgets": "per sample"}])
def test_another_instance_says_nothing(other):
    assert Reachable([run("auto", 10, **other)]).of(run("paper", 8)) is None


def test_a_run_has_for_certain_its_part_of_the_least_proven_bound():
    bounds = {"bound_kind": "proven", "bound": 16.0}
    rows = [run("paper", 8, **bounds), run("auto", 10, **{**bounds, "bound": 12.5})]
    assert Reachable(rows).least_share(rows[0]) == 8 / 12.5
    proof = scip("e3", "proved", potable=10, **CELL)
    assert Reachable([*rows, proof]).least_share(rows[0]) == 8 / 10


def test_a_proof_counts_unless_a_verified_point_refutes_it():
    proof = scip("e3", "proved", potable=10, **CELL)
    assert Reachable([proof]).of(proof) == BestKnown(10.0, "big-m", proved=True, ahead=False, bound=10.0)
    assert Reachable([proof, run("paper", 8)]).proved(run("paper", 8))
    refuted = Reachable([proof, run("auto", 11)])
    assert refuted.of(proof) == BestKnown(11.0, "auto", proved=False, ahead=True, bound=math.inf)
    assert refuted.shares([proof]) == [10 / 11]


def test_a_run_without_a_point_reached_nothing_and_is_not_left_out():
    empty = run("paper", 8, found=False)
    assert Reachable([empty, run("auto", 10)]).shares([empty]) == [0.0]
    assert Reachable([empty]).of(empty) is None


def test_trees_are_judged_by_their_objective():
    cell = {"network": "8x32", "grid": 6, "potable": None}
    rows = [row("e5", "paper", objective=27.0, **cell), row("e5", "auto", objective=30.0, **cell)]
    assert Reachable(rows).shares(rows) == [0.9, 1.0]


def test_one_seed_may_make_two_networks_and_their_runs_are_not_compared():
    mine, theirs = run("paper", 8, spread=1.0807), run("auto", 10, spread=1.0796)
    assert Reachable([mine, theirs]).of(mine) is None
    assert pairs([mine, theirs], "paper", "auto") == []
    same = run("auto", 10, spread=1.0807 + 1e-7)  # the same network, summed in another order
    assert Reachable([mine, same]).shares([mine]) == [0.8]
    dead = [run("paper", 0, spread=0.0, seed=7), run("big-m", 0, spread=1e-9, seed=7)]
    assert len(pairs(dead, "paper", "big-m")) == 1
    assert divided([mine, theirs, same, *dead, {**mine, "spread": None}]) == 1
    assert divided([mine, same]) == 0
