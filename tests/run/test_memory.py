"""Memory: read from files as Linux writes them; the machine's and the container's, whichever is shorter."""

import sys

import pytest

from dovetail.run.memory import resident, spare

MEMINFO = "MemTotal:       10000000 kB\nMemFree:  1 kB\nMemAvailable:    4000000 kB\nHugePages_Total:   0\n"
"""10.24 GB, of which 4.096 are there to be taken."""


def machine(folder, membership="", meminfo=MEMINFO):
    (folder / "self").mkdir()
    (folder / "self/cgroup").write_text(membership)
    (folder / "meminfo").write_text(meminfo)
    return folder


def group(folder, names, limit, usage, cache):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{usage}\n")
    (folder / "memory.stat").write_text(f"anon 17\n{names[2]} {cache}\n")


FIRST = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
SECOND = ("memory.max", "memory.current", "inactive_file")


def test_this_process_holds_something_and_what_it_takes_is_seen():
    before = resident()
    assert before is not None and before > 0.01
    taken = bytearray(300_000_000)
    taken[::4096] = b"x" * len(taken[::4096])
    assert resident() > before + 0.2


def test_without_proc_the_most_ever_held_is_told_and_without_resource_nothing(tmp_path, monkeypatch):
    assert resident(tmp_path) > 0.01
    monkeypatch.setitem(sys.modules, "resource", None)
    assert resident(tmp_path) is None


def test_a_tenth_of_the_machine_stays_free(tmp_path):
    assert spare(machine(tmp_path), tmp_path) == pytest.approx(4.096 - 1.024)


@pytest.mark.parametrize("meminfo", ["", "nonsense", "MemTotal: x kB\n", "MemTotal: 5 kB\n"])
def test_a_machine_that_does_not_say_is_none(tmp_path, meminfo):
    assert spare(machine(tmp_path, meminfo=meminfo), tmp_path) is None
    assert spare(tmp_path / "none", tmp_path) is None


@pytest.mark.parametrize(
    ("membership", "names", "where"),
    [("0::/job/mine\n", SECOND, "job/mine"), ("7:cpu:/\n4:memory:/job\n0::/\n", FIRST, "memory/job")],
)
def test_a_container_may_have_less_than_its_machine(tmp_path, membership, names, where):
    proc, groups = machine(tmp_path, membership), tmp_path / "groups"
    group(groups / where, names, 2_000_000_000, 1_500_000_000, 300_000_000)
    assert spare(proc, groups) == pytest.approx(0.5 + 0.3 - 0.2)


def test_the_group_around_a_group_counts_too_and_one_without_a_limit_does_not(tmp_path):
    proc, groups = machine(tmp_path, "0::/job/mine\n"), tmp_path / "groups"
    group(groups / "job/mine", SECOND, "max", 1_500_000_000, 0)
    assert spare(proc, groups) == pytest.approx(4.096 - 1.024)
    group(groups / "job", SECOND, 1_000_000_000, 500_000_000, 0)
    assert spare(proc, groups) == pytest.approx(0.4)


def test_in_version_1_no_limit_is_a_number_nobody_has(tmp_path):
    proc, groups = machine(tmp_path, "4:memory:/job\n"), tmp_path / "groups"
    group(groups / "memory/job", FIRST, 2**63 - 4096, 0, 0)
    assert spare(proc, groups) == pytest.approx(4.096 - 1.024)
