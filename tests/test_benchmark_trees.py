"""The comparison of tree ensembles: an instance that both sides solve comes out the same."""

import pytest
from benchmarks.tree_runs import Answer, Asked, answered
from benchmarks.tree_table import behind, read, summary, table, written

from tests.conftest import volume


@volume("SCIP on a model with trees written out; our side is solved below")
def test_both_sides_say_the_same():
    pytest.importorskip("pyscipopt_ml")
    ours, theirs = (answered(Asked("diet", 2, 2, 0, 60.0, who)) for who in (0, None))
    assert ours.proved and theirs.proved and "otherwise" not in theirs.note
    assert ours.objective == pytest.approx(ours.bound, rel=1e-4)
    assert theirs.objective == pytest.approx(ours.objective, rel=1e-4)


def test_the_most_is_the_most():
    """A maximum, in the user's sense."""
    answer = answered(Asked("plant", 1, 2, 0, 60.0, 0))
    assert answer.proved and answer.objective == pytest.approx(answer.bound, rel=1e-4)


OURS = Answer(10.0, 9.0, False, 61.0, "min", 0.0, 60.0, [(0.5, 20.0), (20.0, 10.0)], [(1.0, 9.0)])
THEIRS = Answer(10.05, 10.05, True, 41.0, "min", 1.0, 40.0, [(4.0, 15.0), (40.0, 10.05)], [(2.0, 5.0)])


def test_lines_are_read_as_they_were_written(tmp_path):
    path, none = tmp_path / "runs.jsonl", Answer(float("nan"), float("nan"), False, float("nan"), note="none")
    runs = {Asked("diet", 4, 4, seed, 60.0, who): one for seed, who, one in ((0, 0, OURS), (0, None, THEIRS))}
    runs[Asked("diet", 4, 4, 1, 60.0, None)] = none
    path.write_text("".join(written(*run) + "\n" for run in runs.items()) + '{"asked": {"fam')
    again = read(path)
    assert list(again) == list(runs) and str(list(again.values())) == str(list(runs.values()))
    assert read(tmp_path / "nothing") == {}


def test_what_is_behind_and_when():
    assert behind(OURS, THEIRS) == [5.0]  # 20 where the peer has 15; 10 is better at 30 and at 60 s
    assert behind(THEIRS, OURS) == [30.0, 60.0]
    assert behind(OURS, Answer(float("nan"), 0.0, False, 1.0)) == []


def test_both_sides_in_a_table():
    runs = {Asked("diet", 4, 4, 0, 60.0, 0): OURS, Asked("diet", 4, 4, 0, 60.0, None): THEIRS}
    ours, theirs = table(runs).rows
    assert ours[2:8] == ["0.5", "20.0", "\u2013", "20", "10", "10"] and "behind at 5 s" in ours[-1]
    assert theirs[3:5] == ["40.0", "40.0"]  # 10.05 is within 1 % of 10
    (row,) = summary(runs).rows
    assert row[1:] == [
        "0.5 / 4.0",
        "20.0 / 40.0",
        "\u2013 / 40.0",
        "10.00% / 0.00%",
        "1 of 1",
    ]
