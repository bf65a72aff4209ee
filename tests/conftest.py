"""Volume of the suite, and lines that tests want printed at the very end."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Iterable
from types import SimpleNamespace
from typing import TypeVar

import pytest

T = TypeVar("T")
gc.disable()  # until everything is imported: there is nothing to collect yet, and more to look at each time
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a script
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("DOVETAIL_STRICT", "1")  # a part that fails raises, in child processes too

FULL = os.environ.get("DOVETAIL_FULL", "") not in ("", "0")
"""`make test-full` sets this: the same tests at full volume."""


def volume(reason: str) -> pytest.MarkDecorator:
    """For tests that are run at full volume only, since others look at the same thing for less."""
    return pytest.mark.skipif(not FULL, reason=f"volume: {reason}")


def sample(cases: Iterable[T], count: int = 1) -> list[T]:
    """The first few cases; all of them at full volume."""
    return list(cases) if FULL else list(cases)[:count]


def pytest_sessionstart(session: pytest.Session) -> None:
    """What runs tests takes torch; what hands them to workers does not wait for it."""
    if session.config.getoption("numprocesses", None):
        return
    import torch

    torch.set_num_threads(int(os.environ.get("DOVETAIL_TEST_THREADS", "1")))
    if turn := int(os.environ.get("DOVETAIL_TEST_SHAKEN", "0")):
        from tests.shaken import shake

        shake(turn)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector):
    """Every other worker imports from the end, so that in a new clone one of them compiles each file."""
    report = yield
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    if isinstance(collector, pytest.Directory) and worker[-1] in "13579":
        report.result.reverse()
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long tests first, so that two workers end together; then by file, whatever came first."""
    items.sort(key=lambda item: (0 if item.get_closest_marker("long") else 1, item.path))


def pytest_collection_finish() -> None:
    """A million objects of libraries stay for good: looking at them again took a twelfth of all time."""
    gc.freeze()
    gc.enable()


def pytest_runtest_setup() -> None:
    """torch switches oneDNN off for good where a bfloat16 product fails, which some tests let happen."""
    import torch

    torch._C._set_mkldnn_enabled(True)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that stands still until a test sets its `now`: limits are tested on machines of any speed."""
    hands = SimpleNamespace(now=0.0)
    monkeypatch.setattr(time, "perf_counter", lambda: hands.now)
    return hands


@pytest.fixture
def tallied(request: pytest.FixtureRequest):
    """Call with a line of counts: all such lines are added up and printed as one table at the end."""

    def say(title: str, line: str) -> None:
        request.node.user_properties.append((f"tally: {title}", line))

    return say


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    found: dict[str, list[str]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "call":
                for name, line in report.user_properties:
                    if name.startswith("tally: "):
                        found.setdefault(name.removeprefix("tally: "), []).append(line)
    for title, lines in found.items():
        from tests.differential.tally import Tally

        terminalreporter.write_sep("-", title)
        for line in Tally.from_lines(lines).lines():
            terminalreporter.write_line(line)
