"""The far side of a worker: what is raised there comes back as an answer."""

import os
import pickle
from functools import partial

import pytest
import torch

import dovetail as dt
from dovetail.run.failures import is_users, users_code
from dovetail.run.processes import Desk


class Odd(Exception):
    """Cannot be read again: its message is made of two parts."""

    def __init__(self, one, other):
        super().__init__(f"{one} and {other}")


class Bench:
    def fails(self, how):
        raise Odd(1, 2) if how == "odd" else how

    def gradients(self):
        return torch.is_grad_enabled()


@pytest.fixture
def desk():
    threads = torch.get_num_threads()
    made = Desk()
    yield made
    torch.set_num_threads(threads)


def asked(desk, call, *arguments):
    return pickle.loads(desk.answer(pickle.dumps((call, [arguments, None]))))


def test_objects_are_made_once_and_keep_what_they_have(desk):
    letter = pickle.dumps([partial(list, (1,)), list])
    assert pickle.loads(desk.make(letter)) == (True, (os.getpid(), dt.__version__))
    assert asked(desk, "append", 1) == (True, [None, None])
    assert asked(desk, "count", 1) == (True, [2, None])


def test_what_is_raised_travels(desk):
    desk.make(pickle.dumps([Bench, Bench]))
    answered, trouble = asked(desk, "fails", ValueError("no"))
    assert not answered and isinstance(trouble, ValueError) and str(trouble) == "no"
    answered, trouble = asked(desk, "fails", "odd")
    assert not answered and str(trouble) == "Odd: 1 and 2"
    assert asked(desk, "gradients") == (True, [False, None])


@pytest.mark.parametrize("how", ["odd", ValueError("no")])
def test_whose_code_raised_it_travels(how, desk):
    class Predictor(Bench):
        def fails(self, how):
            with users_code():
                super().fails(how)

    desk._objects = [Predictor(), Bench()]
    assert is_users(asked(desk, "fails", how)[1])
    desk._objects = [Bench(), Bench()]
    assert not is_users(asked(desk, "fails", how)[1])


def test_recipes_that_cannot_be_read_are_an_answer(desk):
    answered, trouble = pickle.loads(desk.make(b"nonsense"))
    assert not answered and isinstance(trouble, pickle.UnpicklingError)
