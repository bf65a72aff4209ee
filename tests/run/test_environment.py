"""What a solve sets around itself is put back: threads, gradients, signal handlers."""

import os
import signal
import threading

import pytest
import torch

from dovetail.run.budget import Budget, StopReason
from dovetail.run.environment import Interrupts, cores, gradients, threads


def test_there_is_at_least_one_core():
    assert 1 <= cores() <= (os.cpu_count() or 1)


def test_threads_are_given_back():
    before = torch.get_num_threads()
    with threads(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_gradients_work_inside_whatever_the_caller_has_set():
    with torch.no_grad():
        with gradients():
            x = torch.ones(1, requires_grad=True)
            (2.0 * x).backward()
            assert x.grad.item() == 2.0
        assert not torch.is_grad_enabled()


@pytest.fixture
def _own_handler():
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_own_handler")
def test_the_first_interrupt_stops_and_the_second_leaves():
    budget = Budget()
    with Interrupts() as interrupts:
        interrupts.stop(budget)
        signal.raise_signal(signal.SIGINT)
        assert budget.over is StopReason.INTERRUPT
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("_own_handler")
def test_an_interrupt_before_there_is_a_budget_is_remembered():
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGINT)
        budget = Budget()
        interrupts.stop(budget)
    assert budget.over is StopReason.INTERRUPT


@pytest.mark.usefixtures("_own_handler")
def test_who_ignores_a_signal_is_left_alone():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Interrupts():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_other_threads_set_nothing():
    seen = []

    def inside():
        with Interrupts():
            seen.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    worker = threading.Thread(target=inside)
    worker.start()
    worker.join()
    assert seen == [before]
