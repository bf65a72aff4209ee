"""The record of a written model: part of the result, and of its JSON."""

import json
from dataclasses import replace

import pytest

import dovetail as dt
from dovetail.run.result import ModelEnd, WrittenModel
from tests.small import knapsack

FULL = WrittenModel(ModelEnd.TIME, 1.5, 2.5, 0.75, 51, 65, "timelimit")
SHORT = WrittenModel(ModelEnd.MEMORY, 1.5)


@pytest.fixture(scope="module")
def solved():
    return dt.solve(knapsack(), log=False)


@pytest.mark.parametrize("written", [FULL, SHORT, None])
def test_json_brings_it_back(solved, written):
    again = dt.Result.from_json(replace(solved, written=written).to_json())
    assert again.written == written
    assert written is None or again.written.end is written.end


def test_a_result_from_before_there_was_one_is_read(solved):
    record = json.loads(solved.to_json())
    del record["written"]
    assert dt.Result.from_json(json.dumps(record)).written is None


@pytest.mark.parametrize(
    ("field", "value"),
    [("end", "soon"), ("writing_seconds", None), ("solving_seconds", "x"), ("variables", 1.5), ("said", 3)],
)
def test_what_it_cannot_be_is_refused(solved, field, value):
    record = json.loads(replace(solved, written=FULL).to_json())
    record["written"][field] = value
    with pytest.raises(dt.OptionError, match="not a result as --solution"):
        dt.Result.from_json(json.dumps(record))
