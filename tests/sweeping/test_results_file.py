"""The file: rows as they come, cut where it was killed, refused where it is not ours."""

import pytest

import dovetail as dt
from dovetail.sweeping.sweep import ResultsFile
from dovetail.sweeping.sweep_result import SweepRow


def row(a, error=""):
    return SweepRow({"a": a}, "plant", error=error)


def test_rows_are_there_again_and_the_later_one_counts(tmp_path):
    path = tmp_path / "new" / "rows.jsonl"
    file = ResultsFile.open(path, "plant")
    for each in (row(1, "no memory"), row(2), row(1)):
        file.add(each)
    again = ResultsFile.open(path, "plant")
    assert [(each.case, each.error) for each in again.rows.values()] == [({"a": 1}, ""), ({"a": 2}, "")]
    assert not again.cut_off


def test_every_cut_leaves_whole_rows_and_a_file_to_go_on_with(tmp_path):
    path = tmp_path / "rows.jsonl"
    file = ResultsFile.open(path, "plant")
    file.add(row(1))
    first = path.stat().st_size
    file.add(row(2))
    whole = path.read_bytes()
    for end in range(first, len(whole), 7):
        path.write_bytes(whole[:end])
        cut = ResultsFile.open(path, "plant")
        assert len(cut.rows) == 1
        assert cut.cut_off == (end > first)
        cut.add(row(3))
        assert [each.case["a"] for each in ResultsFile.open(path, "plant").rows.values()] == [1, 3]


def test_what_cannot_be_used_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "rows.jsonl", tmp_path):
        with pytest.raises(dt.OptionError, match="out is .* cannot be written"):
            ResultsFile.open(path, "plant")


def test_files_of_others_are_refused_and_left_alone(tmp_path):
    path = tmp_path / "rows.jsonl"
    ResultsFile.open(path, "plant").add(row(1))
    with pytest.raises(dt.OptionError, match="has rows of 'plant', this is a sweep of 'house'"):
        ResultsFile.open(path, "house")
    text = path.read_bytes() + b"\xff\n" + path.read_bytes()[:9]
    path.write_bytes(text)
    with pytest.raises(dt.OptionError, match="line 2: .*take the line out"):
        ResultsFile.open(path, "plant")
    assert path.read_bytes() == text
