"""Verdicts follow the rows: made-up rows in, the right word out."""

import pytest

from dovetail.experiments.e1 import E1, HEADLINE
from dovetail.experiments.e2 import E2
from dovetail.experiments.e3 import E3
from dovetail.experiments.e5 import E5
from dovetail.experiments.sensitivity import SENSITIVITY
from dovetail.experiments.verdict import Word


def row(experiment, method, seed=42, **fields):
    whole = {
        "key": f"{experiment} {method} {fields} {seed}", "experiment": experiment, "method": method,
        "seed": seed, "device": "cpu", "status": "feasible", "stop": "iterations", "found": True,
        "objective": 1.0, "raw": None, "iterations": 50, "best_at": 20, "seconds": 2.0, "mip_seconds": 1.0,
        "nn_seconds": 1.0, "untouched": 1, "potable": 10, "flipped": 9, "accuracy": 0.7, "majority": 0.6,
        "spread": 1.0, "parameters": 100, "message": "",
    }  # fmt: skip
    return {**whole, **fields}


def verdict(experiment, rows, claim):
    (found,) = [v for v in experiment.verdicts(rows) if v.claim.startswith(claim)]
    return found


def refusal(method="big-m", **fields):
    whole = row("e1", method, **fields, found=False, status="refused", message="too large")
    return {k: v for k, v in whole.items() if k not in ("seconds", "stop", "objective", "potable", "raw")}


def test_a_baseline_that_was_refused_refutes_nothing():
    rows = [row("e1", "paper", **HEADLINE), refusal(**HEADLINE)]
    headline = verdict(E1, rows, "E1 headline")
    assert headline.word is Word.UNTESTABLE
    assert "1 refused for their size" in headline.ours
    assert verdict(E1, rows, "E1 quality").word is Word.UNTESTABLE
    E1.tables(rows)
    E1.draw(rows)


@pytest.mark.parametrize(
    ("seconds", "stop", "word"),
    [(400.0, "proved", Word.HOLDS), (60.0, "time", Word.UNTESTABLE), (60.0, "proved", Word.NOT)],
)
def test_a_ratio_that_falls_short_is_refuted_only_if_the_baseline_was_done(seconds, stop, word):
    cell = {**HEADLINE, "n": 500}
    rows = [row("e1", "paper", seconds=4.0, **cell), row("e1", "big-m", seconds=seconds, stop=stop, **cell)]
    assert verdict(E1, rows, "E1 headline").word is word


@pytest.mark.parametrize(
    ("ours", "stop", "word"),
    [(10, "proved", Word.HOLDS), (12, "time", Word.IN_PART), (5, "proved", Word.NOT), (5, "time", Word.NOT)],
)
def test_quality_against_big_m(ours, stop, word):
    cell = {"network": "2x16", "n": 25, "budgets": "total"}
    rows = [row("e1", "paper", potable=ours, **cell), row("e1", "big-m", stop=stop, **cell)]
    assert verdict(E1, rows, "E1 quality").word is word


@pytest.mark.parametrize(
    ("stop", "ssg", "dd"), [("proved", Word.HOLDS, Word.HOLDS), ("time", Word.UNTESTABLE, Word.UNTESTABLE)]
)
def test_quality_is_relative_to_an_optimum_only_if_scip_was_done(stop, ssg, dd):
    rows = []
    for n in (20, 40, 60, 80):
        rows += [
            row("e3", "ssg", n=n, potable=5, flipped=4),
            row("e3", "paper", n=n),
            row("e3", "big-m", n=n, stop=stop),
        ]
    assert verdict(E3, rows, "E3 SSG loses").word is ssg
    assert verdict(E3, rows, "E3 DD keeps").word is dd
    assert verdict(E3, rows, "E3 removing").word is Word.HOLDS
    assert verdict(E3, rows, "E3 iterations of DD").word is Word.NOT  # the cap is not convergence


def test_success_is_that_of_the_papers_settings():
    def runs(method, stop, spread, init="default"):
        return [
            row("e2", method, seed=seed, network="16x128", n=100, init=init, stop=stop, spread=spread)
            for seed in (1, 2)
        ]

    constant = runs("paper", "iterations", 0.0) + runs("dual-decomposition", "agreed", 0.0)
    assert verdict(E2, constant, "E2 success from 16x128").word is Word.NOT
    assert "2 of the networks are constant" in verdict(E2, constant, "E2 success from 16x128").ours
    agreed = runs("paper", "agreed", 0.0) + runs("dual-decomposition", "agreed", 0.0)
    assert verdict(E2, agreed, "E2 success from 16x128").word is Word.HOLDS


def test_size_is_compared_with_the_papers_count():
    def counted(n, variables, constraints):
        fields = {"variables": variables, "constraints": constraints, "coefficients": 1, "columns": 5}
        return row("e2", "size", network="64x512", n=n, init="default", **fields)

    slip = [counted(500, 49_000_000, 65_000_000), counted(60, 5_900_000, 7_860_000)]
    assert verdict(E2, slip, "Model size").word is Word.IN_PART
    assert "those of 60 samples" in verdict(E2, slip, "Model size").ours
    assert verdict(E2, [counted(500, 5_900_000, 7_800_000)], "Model size").word is Word.HOLDS


def test_totals_that_both_met_the_limit_are_not_compared():
    rows = [
        row("e5", m, network="8x32", grid=6, stop="time", seconds=300.0, nn_seconds=s, objective=27.0)
        for m, s in (("paper", 1.0), ("paper-barrier", 12.0))
    ]
    swap = verdict(E5, rows, "Swapping")
    assert "over the 0 pairs" in swap.ours
    assert swap.word is Word.IN_PART  # the objectives agree, the time is not known
    assert verdict(E5, rows, "E5 barrier over").word is Word.HOLDS
    none = row(
        "e5", "big-m", network="8x32", grid=6, stop="stalled", found=False, message="SCIP says infeasible"
    )
    assert verdict(E5, [*rows, none], "E5 seconds of SCIP").word is Word.UNTESTABLE
    assert (
        "SCIP says infeasible beside a verified point"
        in verdict(E5, [*rows, none], "E5 seconds of SCIP").ours
    )


def test_dependence_needs_both_settings():
    def cell(rho, step, flipped):
        return row("sensitivity", "paper", network="2x16", n=50, rho=rho, step=step, flipped=flipped)

    both = [cell(10.0, 0.01, 20), cell(1.0, 0.01, 5), cell(10.0, 0.1, 2)]
    assert verdict(SENSITIVITY, both, "Convergence depends").word is Word.HOLDS
    only_rho = [cell(10.0, 0.01, 20), cell(1.0, 0.01, 5), cell(10.0, 0.1, 20)]
    assert verdict(SENSITIVITY, only_rho, "Convergence depends").word is Word.IN_PART
