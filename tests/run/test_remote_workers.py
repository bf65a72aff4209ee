"""Workers elsewhere, over lines that are lost when the test says so."""

import pickle
from functools import partial

import pytest
import torch

from dovetail.core.errors import EngineError
from dovetail.run import processes
from dovetail.run.budget import Budget, OutOfTime
from dovetail.run.processes import NotPicklable, RemoteWorkers, WorkerLost

from .clusters import DeskLine


class Fragile(DeskLine):
    """Lost after so many letters."""

    def __init__(self, recipes, lives, ended):
        super().__init__(recipes)
        self._left = lives.pop(0) if lives else 10**9
        self._ended = ended

    def send(self, letter):
        self._left -= 1
        if self._left == 0:
            raise WorkerLost("signal 9")
        super().send(letter)

    def receive(self, seconds):
        if self._left == 1:  # the worker dies over its last letter
            raise WorkerLost("signal 9")
        return super().receive(seconds)

    def end(self):
        self._ended.append(self)


@pytest.fixture(autouse=True)
def threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def workers(*lives, recipes=(list, list, list)):
    """Two workers, the first with two of three lists; `lives` are those of the second."""
    ended, mine = [], list(lives)
    sizes = [len(recipes) - 1, 1]
    letters = [pickle.dumps(list(recipes[:-1])), pickle.dumps(list(recipes[-1:]))]
    lines = [partial(Fragile, letters[0], [], ended), partial(Fragile, letters[1], mine, ended)]
    made = RemoteWorkers(lines, sizes, Budget())
    made.ended = ended
    return made


def test_answers_come_in_the_order_of_objects():
    crew = workers()
    crew.ask("append", [(1,), None, (3,)], Budget())
    assert crew.ask("__len__", [()] * 3, Budget()) == [1, 0, 1]
    assert crew.ask("__len__", [None, None, ()], Budget()) == [None, None, 1]
    assert crew.traffic.calls["__len__"] == 2
    assert crew.traffic.sent["append"] > 0 and crew.traffic.received["append"] > 0
    crew.close()
    assert len(crew.ended) == 2


@pytest.mark.parametrize("lives", [2, 3])
def test_a_lost_worker_is_replaced_renewed_and_asked_again(lives):
    """Whether it is gone when it is asked, or dies over the answer."""
    crew = workers(lives)
    crew.renew_by("extend", [([5, 5],)] * 3)
    crew.ask("append", [(1,)] * 3, Budget())
    assert crew.ask("__len__", [()] * 3, Budget()) in ([1, 1, 3], [1, 1, 2])  # before or after it had its 1
    assert crew.losses == 1
    assert crew.traffic.sent["renewal"] > 0


def test_a_worker_that_is_lost_before_it_began_is_replaced():
    crew = workers(1, 1)
    assert crew.losses == 2
    assert crew.ask("__len__", [()] * 3, Budget()) == [0, 0, 0]


def test_a_worker_that_is_lost_again_and_again_is_given_up():
    crew = workers(*[2] * 9)
    with pytest.raises(EngineError, match=r"worker 2 of 2 was lost 4 times.*signal 9.*memory"):
        crew.ask("clear", [()] * 3, Budget())


def test_without_anybody_to_replace_it_the_loss_is_said():
    crew = workers(2)

    def nobody():
        raise WorkerLost("no machine is left")

    crew._open = [nobody, nobody]
    with pytest.raises(EngineError, match=r"worker 2 of 2 was lost \(signal 9\), .*no machine is left"):
        crew.ask("clear", [()] * 3, Budget())


def test_trouble_in_a_worker_is_raised_here_with_its_number():
    crew = workers()
    with pytest.raises(ValueError, match="not in list") as caught:
        crew.ask("remove", [None, None, (7,)], Budget())
    assert caught.value.__notes__ == ["raised by worker 2 of 2"]


def test_recipes_that_cannot_be_carried_out_end_all_workers():
    with pytest.raises(NotPicklable, match="ValueError"):
        workers(recipes=(list, list, partial(int, "x")))


def test_who_does_not_answer_in_time_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(processes, "GRACE_SECONDS", 0.0)
    crew, over = workers(), Budget(0.0)
    monkeypatch.setattr(Fragile, "receive", lambda self, seconds: None)
    with pytest.raises(OutOfTime):
        crew.ask("clear", [()] * 3, over)


def test_another_version_there_is_refused(monkeypatch):
    monkeypatch.setattr(processes, "made_there", lambda reply: (1, "0.0.0"))
    with pytest.raises(EngineError, match=r"worker 1 has dovetail 0\.0\.0, and this process "):
        workers()
