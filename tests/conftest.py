"""Volume of the suite, and lines that tests want printed at the very end."""

from __future__ import annotations

import os

import pytest
import torch

torch.set_num_threads(1)

FULL = os.environ.get("DOVETAIL_FULL", "") not in ("", "0")
"""`make test-full` sets this: the same tests at full volume."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long tests first, so that two workers end together."""
    items.sort(key=lambda item: 0 if item.get_closest_marker("long") else 1)


@pytest.fixture
def closing_lines(request: pytest.FixtureRequest):
    """Call with lines to have them printed after the summary, whichever worker ran the test."""

    def say(lines: list[str]) -> None:
        request.node.user_properties.append(("closing lines", lines))

    return say


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) != "call":
                continue
            for name, lines in getattr(report, "user_properties", []):
                if name == "closing lines":
                    terminalreporter.write_sep("-", report.nodeid)
                    for line in lines:
                        terminalreporter.write_line(line)
