"""The results file: nothing lost, nothing mixed, nothing overwritten."""

import json

import pytest

import dovetail as dt
from dovetail.experiments.ledger import Ledger
from dovetail.experiments.run import Run, Settings

RUN = Run("e1", (("network", "2x16"), ("n", 5)), "paper", 42)


def row(run):
    return {"key": run.key, "experiment": run.experiment, **dict(run.cell), "method": run.method}


def test_rows_come_back(tmp_path):
    ledger = Ledger.create(tmp_path, Settings(quick=True))
    assert not ledger.has(RUN)
    ledger.add(row(RUN))
    again = Ledger.open(tmp_path)
    assert again.has(RUN)
    assert again.of("e1") == [row(RUN)]
    assert again.of("e2") == []
    assert again.header["settings"]["quick"] is True


def test_a_file_is_never_overwritten(tmp_path):
    Ledger.create(tmp_path, Settings())
    with pytest.raises(dt.OptionError, match=r"results.jsonl is there already; go on with --resume"):
        Ledger.create(tmp_path, Settings())


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_line_that_was_cut_off_is_dropped_and_the_rest_kept(tmp_path, cut):
    ledger = Ledger.create(tmp_path, Settings())
    ledger.add(row(RUN))
    other = Run("e1", RUN.cell, "big-m", 42)
    ledger.add(row(other))
    text = ledger.path.read_bytes()
    ledger.path.write_bytes(text[:-cut])
    again = Ledger.open(tmp_path)
    assert again.has(RUN)
    assert not again.has(other)
    again.add(row(other))
    assert Ledger.open(tmp_path).records == [row(RUN), row(other)]


@pytest.mark.parametrize("change", [{"format": 99}, {"dovetail": "9.9"}])
def test_another_version_is_refused_and_left_alone(tmp_path, change):
    ledger = Ledger.create(tmp_path, Settings())
    text = json.dumps({**ledger.header, **change}) + "\n"
    ledger.path.write_text(text)
    with pytest.raises(dt.OptionError, match="cannot be mixed with new ones"):
        Ledger.open(tmp_path)
    assert ledger.path.read_text() == text


@pytest.mark.parametrize("text", ["", "hello\n", "[1]\n", "{}\n"])
def test_a_file_that_is_something_else_is_refused(tmp_path, text):
    (tmp_path / "results.jsonl").write_text(text)
    with pytest.raises(dt.OptionError, match="is not a results file"):
        Ledger.open(tmp_path)
    assert (tmp_path / "results.jsonl").read_text() == text


def test_nothing_to_resume(tmp_path):
    with pytest.raises(dt.OptionError, match="is not there; leave out --resume"):
        Ledger.open(tmp_path)


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(dt.OptionError, match="cannot be written"):
        Ledger.create(tmp_path / "file" / "out", Settings())


def test_a_run_that_is_there_twice_is_refused(tmp_path):
    ledger = Ledger.create(tmp_path, Settings())
    ledger.add(row(RUN))
    ledger.add(row(RUN))
    with pytest.raises(dt.OptionError, match="twice; remove one of the lines"):
        Ledger.open(tmp_path)


def test_numbers_json_cannot_hold_are_left_out(tmp_path):
    ledger = Ledger.create(tmp_path, Settings())
    ledger.add({**row(RUN), "residual": float("nan"), "curve": [1.0, float("inf")]})
    (again,) = Ledger.open(tmp_path).records
    assert again["residual"] is None
    assert again["curve"] == [1.0, None]
