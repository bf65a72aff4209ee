"""Workers here: asked in order, some of them or all; bytes are counted by call."""

from functools import partial

from dovetail.run.budget import Budget
from dovetail.run.processes import LocalWorkers, Traffic


def test_objects_here_answer_in_order_and_those_not_asked_are_left_alone():
    here = LocalWorkers([partial(list, (1, 1)), partial(list, (2,)), list])
    assert here.ask("count", [(1,), None, (1,)], Budget()) == [2, None, 0]
    here.ask("append", [(7,)] * 3, Budget())
    assert here.ask("count", [(7,)] * 3, Budget()) == [1, 1, 1]
    here.renew_by("clear", [()] * 3)  # nothing is lost here, so nothing is renewed
    here.close()
    assert (here.count, here.losses, here.traffic.total) == (1, 0, 0)


def test_bytes_are_counted_both_ways_and_by_call():
    traffic = Traffic()
    traffic.calls["sum"] += 2
    traffic.sent["sum"] += 30
    traffic.received["sum"] += 10
    traffic.sent["other"] += 5
    assert traffic.total == 45
    assert traffic.per_call("sum") == 20.0
    assert traffic.per_call("never") == 0.0
