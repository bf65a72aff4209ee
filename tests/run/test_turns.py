"""Computations in turns: who works when, that none waits for long, and what each may keep to itself."""

from collections.abc import Callable

import pytest
import torch

from dovetail.run import work
from dovetail.run.budget import Budget, StopReason
from dovetail.run.turns import BEGIN, FIRST, SEARCH_SHARE, Clock, Computation, next_of, proves_next, race

STEP = 0.01
"""Seconds of effort that a step of these computations counts."""


def of_steps(name: str, steps: int, done: list[str]) -> Computation:
    """Does so many steps, and asks after each whether to go on."""
    clock = Clock()
    budget = Budget(60.0).in_turns(clock)

    def run() -> str:
        for _ in range(steps):
            if budget.over:
                return f"{name} cut short"
            done.append(name)
            work.count(effort=STEP)
        return f"{name} done"

    return Computation(run, clock)


def in_turns(computations: list[Computation], gains: Callable[[Computation], float] = lambda one: 0.0):
    """What they return, in the order in which they end."""
    waiting, ended = list(computations), []
    while (one := next_of(waiting)) is not None:
        before = one.clock.used
        found = one.turn(one.slice)
        one.judge(gains(one), False, one.clock.used - before)
        if found is not None:
            waiting.remove(one)
            ended.append(found)
    return ended


@pytest.mark.parametrize("short", [1, 20, 150])
def test_the_short_one_ends_soon_whichever_comes_first(short):
    for first in (0, 1):
        done: list[str] = []
        pair = [of_steps("short", short, done), of_steps("long", 2000, done)]
        assert in_turns(pair if first == 0 else pair[::-1]) == ["short done", "long done"]
        before = len(done) - done[::-1].index("short")  # steps of both until the short one was done
        assert before <= 4 * short + 2e-6 * FIRST / STEP + 4


def test_the_same_turns_each_time():
    orders = []
    for _ in range(2):
        done: list[str] = []
        in_turns([of_steps(name, 300, done) for name in "abc"])
        orders.append("".join(done))
    assert orders[0] == orders[1]
    first = round(1e-6 * FIRST / STEP)
    assert orders[0].startswith("a" * first + "b" * first + "c" * first)


def test_one_that_gains_has_more_turns():
    done: list[str] = []
    pair = [of_steps(name, 1000, done) for name in ("idle", "gaining")]
    in_turns(pair, lambda one: 0.1 if one is pair[1] else 0.0)
    half = done[: len(done) // 2]
    assert half.count("gaining") > 1.5 * half.count("idle") > 0


def test_one_that_closes_the_gap_goes_on_until_it_stalls():
    done: list[str] = []
    three = [of_steps(name, 900, done) for name in ("other", "third", "closing")]
    in_turns(three, lambda one: 0.6 if one is three[2] and one.clock.used < 10 * FIRST else 0.0)
    first = round(1e-6 * FIRST / STEP)
    assert done[2 * first :].index("other") + 2 * first >= 9 * first  # it worked alone
    then = done[16 * first : 60 * first]
    assert min(map(then.count, ("other", "third"))) >= 0.25 * len(then)


def test_searches_have_their_share_however_many_there_are():
    for searches in (1, 4):
        done: list[str] = []
        parts = [of_steps(f"search {k}", 3000, done) for k in range(searches)]
        proof = of_steps("proof", 3000, done)
        proof.proves = True
        in_turns([*parts, proof], lambda one: 0.02)  # all gain
        begun = done[:1500]
        share = (1500 - begun.count("proof")) / begun.count("proof")
        assert 0.5 * SEARCH_SHARE < share < 2.5 * SEARCH_SHARE


def test_the_share_of_searches_can_be_larger():
    pair = [of_steps(name, 500, []) for name in ("search", "proof")]
    pair[1].proves = True
    for one in pair:
        one.turn(FIRST)
    assert next_of(pair) is pair[1] and next_of(pair, search_share=2.0) is pair[0]


def test_another_begins_when_each_at_work_has_worked_for_it():
    done: list[str] = []
    pair = [of_steps(name, 500, done) for name in ("first", "second")]
    assert next_of([], [False]) is None
    for one in pair:
        assert next_of(pair, [False]) is one
        one.turn(2 * BEGIN)
    assert next_of(pair, [False]) is None
    assert next_of(pair) is pair[0]


def test_the_first_of_a_class_begins_at_once():
    search = of_steps("search", 500, [])
    assert not proves_next([], [False, True])
    assert next_of([search], [False]) is search
    assert next_of([search], [False, True]) is None
    assert proves_next([search], [False, True])
    proof = of_steps("proof", 500, [])
    proof.proves = True
    assert next_of([proof], [True, False]) is None
    assert not proves_next([proof], [True, False])
    assert next_of([search, proof], [True, False]) is not None


def test_time_stands_still_for_one_that_rests(monkeypatch):
    now = 100.0
    monkeypatch.setattr("time.perf_counter", lambda: now)
    clock = Clock()
    budget = Budget(60.0).in_turns(clock)
    seen = []

    def run() -> str:
        nonlocal now
        part = budget.part(2.0)
        now += 1.5
        work.count(effort=1.0)
        assert budget.over is None  # others work here
        seen.append((part.left, budget.left))
        return "done"

    one = Computation(run, clock)
    assert one.turn(FIRST) is None
    now += 30.0
    assert one.turn(FIRST) == "done"
    assert seen == [(pytest.approx(0.5), pytest.approx(60.0 - 31.5))]


def test_what_is_undivided_has_no_rest_inside():
    done: list[str] = []
    clock = Clock()
    budget = Budget(60.0).in_turns(clock)

    def run() -> str:
        with budget.undivided():
            for _ in range(100):
                work.count(effort=STEP)
                assert budget.over is None
                done.append("undivided")
        assert budget.over is None
        done.append("after")
        return "done"

    one = Computation(run, clock)
    assert one.turn(FIRST) is None
    assert done == ["undivided"] * 100
    assert one.turn(FIRST) == "done"


def test_one_that_is_closed_ends_as_if_its_time_were_over():
    done: list[str] = []
    one = of_steps("one", 500, done)
    assert one.turn(FIRST) is None
    assert one.close() == "one cut short"
    assert of_steps("never begun", 500, done).close() is None
    assert one.close() is None


def test_an_error_reaches_whoever_gives_the_turn():
    clock = Clock()
    budget = Budget(60.0).in_turns(clock)

    def run() -> str:
        work.count(effort=1.0)
        assert budget.over is None
        raise ValueError("in the second turn")

    one = Computation(run, clock)
    assert one.turn(FIRST) is None
    with pytest.raises(ValueError, match="second turn"):
        one.turn(FIRST)


def test_each_keeps_its_own_mode_of_gradients():
    clock = Clock()
    budget = Budget(60.0).in_turns(clock)

    def run() -> str:
        with torch.no_grad():
            work.count(effort=1.0)
            assert budget.over is None
            assert not torch.is_grad_enabled()
        return "done"

    one = Computation(run, clock)
    assert one.turn(FIRST) is None
    assert torch.is_grad_enabled()
    assert one.turn(FIRST) == "done"


def test_an_interrupt_ends_one_that_rests():
    whole, clock = Budget(60.0), Clock()
    budget = whole.in_turns(clock)

    def run() -> StopReason | str:
        work.count(effort=1.0)
        return budget.over or "went on"

    one = Computation(run, clock)
    assert one.turn(FIRST) is None
    whole.stop(StopReason.INTERRUPT)
    assert one.turn(FIRST) is StopReason.INTERRUPT


def steps_of(count: int, answer: str) -> Callable[[Budget], str]:
    """Does so many steps, and says the answer, or that it was cut short."""

    def run(budget: Budget) -> str:
        for _ in range(count):
            work.count(effort=STEP)
            if budget.over:
                return f"{answer}, cut short"
        return answer

    return run


def test_a_race_ends_with_the_first_answer_that_decides():
    runs = [steps_of(3000, "long"), steps_of(30, "short")]
    before = work.total().effort
    assert race(runs, Budget(60.0), lambda answer: True) == ["short"]
    assert work.total().effort - before < 1e6 * STEP * 150
    assert sorted(race(runs, Budget(60.0), lambda answer: False)) == ["long", "short"]


def test_a_race_inside_a_computation_rests_with_it():
    clock = Clock()
    budget = Budget(60.0).in_turns(clock)
    one = Computation(lambda: race([steps_of(300, "a"), steps_of(300, "b")], budget, bool), clock)
    turns = 0
    while (answer := one.turn(FIRST)) is None:
        turns += 1
    assert answer == ["a"] and turns > 50


def test_a_race_that_is_closed_has_what_there_is():
    clock = Clock()
    budget = Budget(60.0).in_turns(clock)
    one = Computation(lambda: race([steps_of(300, "a"), steps_of(300, "b")], budget, bool), clock)
    while clock.used < 1e6:
        assert one.turn(FIRST) is None
    assert one.close() == ["a, cut short", "b, cut short"]
