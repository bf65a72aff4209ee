"""The results file: nothing lost, nothing mixed, nothing overwritten."""

import json
import os
import platform
from dataclasses import replace

import pytest

import dovetail as dt
from dovetail_study.experiment import BenchSettings, Run
from dovetail_study.ledger import PACKAGES, Ledger, commit

RUN = Run("e1", (("network", "2x16"), ("n", 5)), "paper", 42)
OTHER = Run("e1", RUN.cell, "paper", 123)
THIRD = Run("e2", RUN.cell, "paper", 42)


ORIGIN = ("commit", "machine", "threads", "shared", "dovetail")


def row(run, **fields):
    cell = dict(run.cell)
    return {"key": run.key, "experiment": run.experiment, **cell, "method": run.method, **fields}


def outcomes(ledger):
    """The rows without what the ledger adds."""
    return [{k: v for k, v in record.items() if k not in ORIGIN} for record in ledger.records]


def test_rows_come_back(tmp_path):
    ledger = Ledger.create(tmp_path, BenchSettings(quick=True))
    assert not ledger.has(RUN)
    ledger.add(row(RUN))
    again = Ledger.open(tmp_path)
    assert again.has(RUN)
    assert outcomes(again) == [row(RUN)]
    assert again.of("e1") == again.records
    assert again.of("e2") == []
    assert again.header["settings"]["quick"] is True


def test_a_file_is_never_overwritten(tmp_path):
    Ledger.create(tmp_path, BenchSettings())
    with pytest.raises(dt.OptionError, match=r"results.jsonl is there already; go on with --resume"):
        Ledger.create(tmp_path, BenchSettings())


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_line_that_was_cut_off_is_dropped_and_the_rest_kept(tmp_path, cut):
    ledger = Ledger.create(tmp_path, BenchSettings())
    ledger.add(row(RUN))
    other = OTHER
    ledger.add(row(other))
    text = ledger.path.read_bytes()
    ledger.path.write_bytes(text[:-cut])
    again = Ledger.open(tmp_path)
    assert again.has(RUN)
    assert not again.has(other)
    again.add(row(other))
    assert outcomes(Ledger.open(tmp_path)) == [row(RUN), row(other)]


@pytest.mark.parametrize("change", [{"format": 99}, {"dovetail": "9.9"}])
def test_another_version_is_refused_and_left_alone(tmp_path, change):
    ledger = Ledger.create(tmp_path, BenchSettings())
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


def test_a_run_that_is_there_twice_is_refused(tmp_path):
    ledger = Ledger.create(tmp_path, BenchSettings())
    ledger.add(row(RUN))
    ledger.add(row(RUN))
    with pytest.raises(dt.OptionError, match="twice; remove one of the lines"):
        Ledger.open(tmp_path)


def test_every_row_says_where_it_comes_from(tmp_path):
    ledger = Ledger.create(tmp_path, BenchSettings(), shared=3)
    ledger.add(row(RUN))
    (record,) = Ledger.open(tmp_path).records
    assert record["shared"] == 3 and record["threads"] == 1
    assert record["commit"] == ledger.header["commit"] == commit(*PACKAGES)
    assert record["dovetail"] == dt.__version__
    assert record["machine"] == f"{platform.machine()}, {os.cpu_count()} cores"
    again = Ledger.open(tmp_path, shared=2)
    again.add(row(OTHER))
    assert [record["shared"] for record in Ledger.open(tmp_path).records] == [3, 2]


@pytest.mark.parametrize(
    ("given", "due"), [(None, False), (row(RUN, found=False), False), (row(RUN, found=True), True)]
)
def test_a_run_is_due_once_the_run_it_is_given_for_has_found_a_point(tmp_path, given, due):
    ledger = Ledger.create(tmp_path, BenchSettings())
    later = replace(OTHER, given=RUN.key)
    assert ledger.due(RUN) and not ledger.due(later)
    if given is not None:
        ledger.add(given)
        assert not ledger.due(RUN)
    assert ledger.due(later) is due
    ledger.add(row(later))
    assert not ledger.due(later)


def of_commit(folder, name, *runs, **settings):
    """A file as that commit would leave it."""
    ledger = Ledger.create(folder, BenchSettings(**settings))
    ledger.provenance = replace(ledger.provenance, commit=name)
    for run in runs:
        ledger.add(row(run, objective=1.0))
    return ledger


def test_rows_of_another_commit_are_added_to_only_if_that_is_said(tmp_path):
    of_commit(tmp_path, commit(*PACKAGES), RUN).require_one_commit()
    of_commit(tmp_path / "old", "abc", RUN)
    with pytest.raises(dt.OptionError, match="rows of commit abc, this is .*--mix-commits"):
        Ledger.open(tmp_path / "old").require_one_commit()


def test_rows_of_another_machine_are_taken_over_as_they_are(tmp_path):
    mine, theirs = of_commit(tmp_path / "a", "abc", RUN), of_commit(tmp_path / "b", "abc", RUN, OTHER, THIRD)
    theirs.path.write_text(theirs.path.read_text() + "{cut")
    assert mine.merge(theirs.path, ["e1"]) == 1
    assert mine.merge(theirs.path, ["e1", "e2"]) == 1
    assert Ledger.open(tmp_path / "a").records == theirs.records
    assert theirs.path.read_text().endswith("{cut")


def test_what_does_not_fit_is_refused_and_nothing_is_taken_over(tmp_path):
    mine = of_commit(tmp_path / "mine", "abc", RUN)
    before = mine.path.read_text()
    settings = of_commit(tmp_path / "a", "abc", OTHER, baseline_limit=9.0)
    with pytest.raises(dt.OptionError, match="has settings .*cannot be mixed"):
        mine.merge(settings.path, ["e1"])
    version = of_commit(tmp_path / "b", "abc", OTHER)
    version.path.write_text(version.path.read_text().replace('"format": 2', '"format": 1'))
    with pytest.raises(dt.OptionError, match="has format 1"):
        mine.merge(version.path, ["e1"])
    twice = of_commit(tmp_path / "c", "abc", OTHER)
    twice.add(row(RUN, objective=2.0))
    with pytest.raises(dt.OptionError, match="with another outcome"):
        mine.merge(twice.path, ["e1"])
    older = of_commit(tmp_path / "d", "older", OTHER)
    with pytest.raises(dt.OptionError, match="commits abc, older; add --mix-commits"):
        mine.merge(older.path, ["e1"])
    assert mine.path.read_text() == before
    assert mine.merge(older.path, ["e1"], mix_commits=True) == 1
    assert [record["commit"] for record in Ledger.open(tmp_path / "mine").records] == ["abc", "older"]
