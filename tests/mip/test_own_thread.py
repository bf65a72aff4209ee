"""Work on a thread of its own is counted while it runs, also where it does not look up for long."""

import time

import pytest

from dovetail.mip.own_thread import Mailbox, OwnThread, TurnTaker
from dovetail.run import work


class Watching:
    """A budget that never ends and notes what is counted when it is asked."""

    left = 1e9

    def __init__(self):
        self.seen = []

    @property
    def over(self):
        self.seen.append(work.total().effort)


@pytest.mark.parametrize("clocks", [True, False])
def test_work_that_does_not_look_up_is_counted(monkeypatch, clocks):
    if not clocks:  # as on systems without clocks of other threads
        monkeypatch.delattr(time, "pthread_getcpuclockid", raising=False)
    elif not hasattr(time, "pthread_getcpuclockid"):
        pytest.skip("no clocks of other threads")
    takers, budget, before = [], Watching(), work.total().effort

    def busy(mailbox: Mailbox) -> str:
        takers.append(TurnTaker(mailbox, lambda: None))
        while time.thread_time() < 0.3:
            pass
        takers[0].end()
        return "done"

    assert OwnThread(busy).wait(budget, lambda: None) == "done"
    takers[0].count()
    assert 0.2e6 <= work.total().effort - before <= 0.4e6
    halfway = budget.seen[len(budget.seen) // 2] - before
    assert halfway >= 0.03e6 if clocks else halfway <= 0
