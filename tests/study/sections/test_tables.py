"""Tables: the numbers of made-up rows worked out by hand, and rows of which half is missing."""

import random

import pytest

from dovetail_study import EXPERIMENTS
from dovetail_study.bench import experiment_named
from dovetail_study.experiment import Word
from tests.study.made_up import row, scip, whole

OWN = [name for name in EXPERIMENTS if name != "theory"]


def line(table, **wanted):
    """The one row of a table with these cells, by the names of its columns."""
    rows = [dict(zip(table.header, cells, strict=True)) for cells in table.rows]
    (found,) = [each for each in rows if all(each[name] == value for name, value in wanted.items())]
    return found


def test_mean_and_spread_best_known_gap_residual_engine_and_ends():
    cell = {"network": "2x16", "n": 25, "budgets": "total"}
    rows = [
        row("e1", "paper", seed=s, potable=p, residual=r, **cell) for s, p, r in ((1, 8, 0.1), (2, 6, 0.3))
    ]
    rows += [
        row("e1", "auto", seed=1, potable=10, **cell),
        scip("e1", "memory", seed=1, memory_gb=7.5, **cell),
    ]
    table, ends = experiment_named("e1").tables(rows)
    mine = line(table, method="paper")
    assert mine["potable"] == "7 ± 1.4"
    assert mine["best known"] == "10 (1 of 2)"  # nobody looked at seed 2
    assert mine["gap to it, %"] == "20"
    assert (mine["last residual"], mine["engine"], mine["converged"]) == ("0.2", "piqp", "0 of 2")
    assert line(table, method="auto")["gap to it, %"] == "0"
    assert line(table, method="big-m")["potable"] == "–"
    assert line(ends)["out of memory"] == "1"
    assert (line(ends)["writing, s"], line(ends)["solving, s"], line(ends)["peak memory, GB"]) == (
        "1",
        "20",
        "7.5",
    )
    assert table.records == rows
    assert ends.records == rows[-1:]


def test_a_speed_up_says_whether_scip_was_done_and_over_how_many_pairs():
    cell = {"network": "2x16", "n": 20, "budgets": "total"}
    rows = [row("e3", "paper", seconds=2.0, seed=s, **cell) for s in (1, 2)]
    done = [scip("e3", "proved", seed=1, **cell), scip("e3", "writing", seed=2, **cell)]
    mine = line(experiment_named("e3").tables(rows + done)[0], method="paper")
    assert (mine["speed-up over SCIP"], mine["pairs"]) == ("30x", "1")
    cut = [scip("e3", "time", seed=1, **cell)]
    assert (
        line(experiment_named("e3").tables(rows + cut)[0], method="paper")["speed-up over SCIP"] == "> 155x"
    )


@pytest.mark.parametrize("name", OWN)
def test_every_row_of_a_bench_is_in_a_table(name):
    rows = whole(name)
    tables = experiment_named(name).tables(rows)
    assert {each["key"] for table in tables for each in table.records} == {each["key"] for each in rows}
    counted = 0
    for table in tables if name == "readings" else tables[:1]:
        column = table.header.index("runs")
        counted += sum(int(cells[column]) for cells in table.rows)
    assert counted == sum(each["method"] != "size" for each in rows)


@pytest.mark.parametrize("name", OWN)
def test_ends_of_big_m_add_up(name):
    for table in experiment_named(name).tables(whole(name)):
        if "how big-m ended" in table.title:
            runs, first = table.header.index("runs"), table.header.index("writing, s")
            for cells in table.rows:
                assert sum(map(int, cells[runs + 1 : first])) == int(cells[runs])


@pytest.mark.parametrize("name", OWN)
def test_fields_that_are_missing_are_dashes_and_no_crash(name):
    """Lines of old files lack fields, a bench may be stopped anywhere: what is there is shown."""
    experiment, dice = experiment_named(name), random.Random(1)
    needed = {"key", "experiment", "method", "seed", "network", "n", "init", "grid", "rho", "step"}
    if name == "e1":
        needed.add("budgets")
    for size in (0, 1, 2, 5, 40):
        every = whole(name)
        some = dice.sample(every, min(size, len(every)))
        optional = (
            "variables",
            "constraints",
            "coefficients",
            "columns",
        )  # of "size", which has nothing else
        bare = [
            {k: v for k, v in each.items() if k in needed or (each["method"] == "size" and k in optional)}
            for each in some
        ]
        for rows in (some, bare):
            experiment.tables(rows)
            experiment.draw(rows)
            assert all(isinstance(verdict.word, Word) for verdict in experiment.verdicts(rows))
