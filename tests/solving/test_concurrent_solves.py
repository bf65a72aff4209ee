"""Concurrent solves as whoever waits for them sees them: points, silence, and processes that are gone."""

import pickle

import numpy as np
import pytest

from dovetail.run.failures import Failure, counted, mark
from dovetail.run.processes import Lost
from dovetail.solving.concurrent import ConcurrentSolves

READY = pickle.dumps((True, (17, "0.1.0")))
POINT = np.array([1.0, 2.0])


class Told:
    """A line whose replies are known before; None is silence, and an exception a process that is gone."""

    def __init__(self, *replies):
        self.replies, self.letters, self.ended = list(replies), [], False

    def begin(self):
        pass

    def send(self, letter):
        self.letters.append(pickle.loads(letter))

    def receive(self, seconds):
        reply = self.replies.pop(0) if self.replies else None
        if isinstance(reply, Exception):
            raise reply
        return reply

    def end(self):
        self.ended = True


def answer(x):
    return pickle.dumps((True, [x]))


def test_points_come_once_the_process_is_ready_and_only_of_those_who_answer():
    quick, slow, said = Told(READY, answer(POINT), answer(None)), Told(None, READY, None, answer(POINT)), []
    others = ConcurrentSolves([quick, slow], said.append)
    assert others.arrived(5.0) == [] and quick.letters == []  # ready, and not asked yet
    (x,) = others.arrived(4.0)
    assert x.tolist() == POINT.tolist() and quick.letters == [("better_than", [(4.0,)])]
    assert others.arrived(3.0) == []
    (x,) = others.arrived(2.0)
    assert slow.letters == [("better_than", [(3.0,)])]  # the question that it took its time for
    assert said == []


def failed(error, *, users):
    if users:
        mark(error)
    return pickle.dumps((False, error))


@pytest.mark.parametrize(
    "reply", [Lost("signal 9"), failed(ValueError("a network's own"), users=True)], ids=["killed", "failed"]
)
def test_one_that_is_gone_is_one_less(reply):
    gone, there, said = Told(READY, reply), Told(READY, None, answer(POINT)), []
    others = ConcurrentSolves([gone, there], said.append)
    assert [len(others.arrived(1.0)) for _ in range(4)] == [0, 0, 1, 0]
    assert gone.ended and not there.ended
    (text,) = said
    assert "concurrent solve 1 has ended" in text and ("signal 9" in text or "a network's own" in text)
    others.close()
    assert there.ended and others.arrived(1.0) == []


def test_a_fault_of_our_own_there_is_a_failure_here(monkeypatch):
    def asked():
        others = ConcurrentSolves([Told(READY, failed(ValueError("ours"), users=False))], lambda text: None)
        others.arrived(1.0)
        return others.arrived(1.0)

    with pytest.raises(ValueError, match="ours"):
        asked()
    monkeypatch.delenv("DOVETAIL_STRICT")
    with counted(lambda text: None) as failures:
        assert asked() == []
    assert list(failures) == [Failure("concurrent solve 1", "ValueError", "ours")]
