"""Failures: what ends in a part, what passes through it, and what is kept of it."""

import logging
import pickle
from dataclasses import asdict

import pytest
import torch

import dovetail as dt
from dovetail.run.budget import OutOfTime
from dovetail.run.failures import (
    Failure,
    counted,
    expendable,
    in_words,
    is_users,
    mark,
    note,
    users_code,
)
from dovetail.run.record import read


@pytest.fixture(autouse=True)
def not_strict(monkeypatch):
    monkeypatch.delenv("DOVETAIL_STRICT", raising=False)


def failing(error, part="a part", *kinds):
    with expendable(part, *kinds):
        raise error


def test_a_failure_is_said_once_and_counted_each_time():
    said = []
    with counted(said.append) as failures:
        for number in range(3):
            failing(ValueError(f"number {number}\nand more"))
        failing(MemoryError())
    assert list(failures) == [
        Failure("a part", "ValueError", "number 0", times=3),
        Failure("a part", "MemoryError", ""),
    ]
    assert said == [
        "failed: a part (ValueError: number 0); the solve continues without it",
        "failed: a part (MemoryError); the solve continues without it",
    ]


def test_one_exception_that_several_parts_meet_is_counted_once():
    error = ValueError("shared")
    with counted(lambda text: None) as failures:
        failing(error, "first")
        failing(error, "second")
        note("third", error)
    assert [failure.part for failure in failures] == ["first"]


def test_solves_within_solves_count_their_own():
    with counted(lambda text: None) as outer:
        with counted(lambda text: None) as inner:
            failing(ValueError("inner"))
        failing(ValueError("outer"))
    assert [f.message for f in inner] == ["inner"] and [f.message for f in outer] == ["outer"]


def test_without_a_solve_it_is_a_warning(caplog):
    with caplog.at_level(logging.WARNING, "dovetail"):
        failing(ValueError("why"), "certificate")
    assert caplog.messages == ["certificate (ValueError: why)"]


@pytest.mark.parametrize("passes", [KeyboardInterrupt(), SystemExit(3), OutOfTime()])
def test_what_is_no_failure_passes(passes):
    with pytest.raises(type(passes)):
        failing(passes)


def test_other_kinds_pass():
    failing(dt.EngineError("no answer"), "a part", dt.EngineError)
    with pytest.raises(ValueError, match="why"):
        failing(ValueError("why"), "a part", dt.EngineError)


def test_what_the_user_s_code_raises_passes_unchanged():
    def predict():
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as raised, expendable("a part"), users_code():
        predict()
    assert raised.traceback[-1].name == "predict"
    assert is_users(pickle.loads(pickle.dumps(raised.value)))  # in another process, too


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("none left"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: can't allocate memory: you ..."
        ),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB."),
    ],
)
def test_memory_that_runs_out_in_a_predictor_is_a_failure_of_the_part(error):
    with counted(lambda text: None) as failures, expendable("a part"), users_code():
        raise error
    assert [failure.error for failure in failures] == [type(error).__name__]


def test_torch_says_so_in_these_words():
    with pytest.raises(RuntimeError) as raised:
        torch.empty(2**55, dtype=torch.float64)
    mark(raised.value)
    assert not is_users(raised.value)


class Backward(torch.autograd.Function):
    """A function of the user's whose gradient fails."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("no gradient here")


def hooked(x):
    y = 2.0 * x
    y.register_hook(lambda gradient: 1 / 0)
    return y


def mismatched(x):
    """torch's own complaint within a gradient."""
    return 2.0 * x


@pytest.mark.parametrize(
    ("call", "users"),
    [(Backward.apply, True), (hooked, True), (mismatched, False)],
    ids=["backward", "hooked", "mismatched"],
)
def test_errors_of_the_user_s_gradients_are_the_user_s(call, users):
    x = torch.ones(3, requires_grad=True)
    y = call(x)
    with pytest.raises((ValueError, ZeroDivisionError, RuntimeError)) as raised:
        torch.autograd.grad(y, x, torch.ones(3 if users else 4))
    assert is_users(raised.value) is users


def test_strict_mode_raises_all_but_failures_of_engines(monkeypatch):
    monkeypatch.setenv("DOVETAIL_STRICT", "1")
    with counted(lambda text: None) as failures:
        with pytest.raises(ValueError, match="why"):
            failing(ValueError("why"))
        failing(dt.EngineError("no answer"))
    assert [failure.error for failure in failures] == ["EngineError"]


def test_words():
    some = [Failure(f"part {k}", "ValueError", "why") for k in range(5)]
    assert in_words([]) == ""
    assert in_words(some[:1]) == "1 part failed, and the solve continued without: part 0 (ValueError: why)"
    assert in_words(some).endswith("part 2 (ValueError: why) and 2 more")
    assert str(Failure("LP", "EngineError", "no", times=1200)) == "LP (EngineError: no), 1,200 times"


def test_a_record_is_read_back_and_looked_at():
    failure = Failure("LP", "EngineError", "no", times=3)
    assert read("failure", asdict(failure), Failure) == failure
    for bad in ({"part": 3}, {"times": "3"}, {"error": None}):
        with pytest.raises(ValueError, match=r"failure\.\w+ is .*, no (str|int)"):
            read("failure", {**asdict(failure), **bad}, Failure)
