"""The ticker: calls while it runs, and none after it was stopped."""

import threading

from dovetail.run.monitor import Ticker


def test_it_ticks_until_it_is_stopped():
    ticks, third = [], threading.Event()

    def tick():
        ticks.append(threading.current_thread())
        if len(ticks) == 3:
            third.set()

    ticker = Ticker(tick, seconds=0.001)
    ticker.start()
    assert third.wait(10.0)
    ticker.stop()
    count = len(ticks)
    ticker.stop()
    assert ticks[0] is not threading.current_thread() and not ticks[0].is_alive()
    assert len(ticks) == count


def test_one_that_never_began_can_be_stopped():
    ticks, before = [], threading.enumerate()
    ticker = Ticker(lambda: ticks.append(None), seconds=0.001)
    ticker.stop()
    assert ticks == [] and threading.enumerate() == before
