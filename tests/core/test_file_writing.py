"""Files are written whole or not at all."""

import errno
import os
import stat

import pytest

import dovetail as dt
from dovetail.core.files import require_writable, write_file


def left_behind(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".dovetail-")]


def test_text_and_bytes_are_written_and_replaced(tmp_path):
    place = tmp_path / "a.txt"
    assert write_file(place, "grün\n") == place
    assert place.read_bytes() == "grün\n".encode()
    write_file(str(place), b"new")
    assert place.read_bytes() == b"new"
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("when", ["write", "rename"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, when):
    place = tmp_path / "a.txt"
    place.write_text("old")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync" if when == "write" else "replace", full)
    with pytest.raises(dt.OptionError, match=r"a\.txt cannot be written: No space left on device"):
        write_file(place, "new")
    assert place.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_an_interrupt_leaves_nothing_half_written(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_file(tmp_path / "a.txt", "new")
    assert list(tmp_path.iterdir()) == []


def test_permissions_are_those_of_any_new_file_or_of_the_old_one(tmp_path):
    before = os.umask(0o027)
    try:
        assert stat.S_IMODE(write_file(tmp_path / "a", "").stat().st_mode) == 0o640
    finally:
        os.umask(before)
    (tmp_path / "a").chmod(0o604)
    write_file(tmp_path / "a", "again")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o604


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_file(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_devices_are_written_to_not_replaced():
    require_writable(os.devnull)
    write_file(os.devnull, "gone")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_places_that_cannot_be_written_are_known_before(tmp_path):
    (tmp_path / "file").write_text("x")
    require_writable(tmp_path / "fine.html")
    for place, why in [
        (tmp_path, "it is a folder"),
        (tmp_path / "nowhere" / "a.html", "there is no such folder"),
        (tmp_path / "file" / "a.html", "Not a directory"),
    ]:
        for refused in (require_writable, lambda place: write_file(place, "x")):
            with pytest.raises(dt.OptionError, match="cannot be written") as refusal:
                refused(place)
        assert str(place) in str(refusal.value)
        with pytest.raises(dt.OptionError, match=why):
            require_writable(place)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_protected_file_is_refused_before(tmp_path, monkeypatch):
    place = tmp_path / "kept.json"
    place.write_text("x")
    monkeypatch.setattr(os, "access", lambda *_: False)  # whoever runs the tests may be allowed everything
    with pytest.raises(dt.OptionError, match="write-protected"):
        require_writable(place)
