"""rho: changes finitely often, not too fast, within its range, the right way."""

import itertools

import pytest

import dovetail as dt


def run(rule, pairs, rho=10.0):
    state = rule.start(rho)
    history = []
    for k, (primal, dual) in enumerate(pairs, start=1):
        state = rule.update(state, k, primal, dual)
        history.append(state.rho)
    return history


def test_fixed_stays():
    assert run(dt.FixedPenalty(), [(100.0, 0.0)] * 20) == [10.0] * 20


def test_grows_when_apart_and_shrinks_when_still():
    rule = dt.BalancedPenalty(relative=False)
    assert run(rule, [(1.0, 0.01)] * 5)[-1] == 20.0
    assert run(rule, [(0.01, 1.0)] * 5)[-1] == 5.0
    assert run(rule, [(1.0, 0.2)] * 30)[-1] == 10.0


def test_waits_between_changes_and_ends_after_ten():
    history = run(dt.BalancedPenalty(relative=False), [(1.0, 0.0)] * 200)
    changes = [k for k in range(1, 200) if history[k] != history[k - 1]]
    assert all(b - a >= 5 for a, b in itertools.pairwise(changes))
    assert len(set(history)) == 11
    assert history[-1] == 10.0 * 2**10


def test_stays_within_its_range():
    rule = dt.BalancedPenalty(relative=False, most_changes=1000, range_=100.0, pause=1)
    assert max(run(rule, [(1.0, 0.0)] * 50)) <= 1000.0
    assert min(run(rule, [(0.0, 1.0)] * 50)) >= 0.1


def test_relative_takes_the_first_rho_out_of_the_dual_residual():
    pairs = [(1.0, 50.0)] * 6
    assert run(dt.BalancedPenalty(relative=False), pairs, rho=100.0)[-1] == 50.0
    assert run(dt.BalancedPenalty(relative=True), pairs, rho=100.0)[-1] == 100.0


@pytest.mark.parametrize("options", [{"factor": 1.0}, {"ratio": 0.5}, {"range_": 0.1}])
def test_options_are_checked(options):
    with pytest.raises(dt.OptionError):
        dt.BalancedPenalty(**options)


def test_the_papers_rule_raises_rho_when_the_residual_ceases_to_fall():
    falling = [(1.0 / k, 1.0) for k in range(1, 10)]
    assert run(dt.IncreasingPenalty(), falling) == [10.0] * 9
    assert run(dt.IncreasingPenalty(factor=3.0), [(1.0, 0.0), (0.5, 0.0), (0.5, 0.0), (0.7, 0.0)]) == [
        10.0, 10.0, 30.0, 90.0
    ]  # fmt: skip
    assert run(dt.IncreasingPenalty(), [(1.0, 100.0)] * 200)[-1] == 10.0 * 2**10
    with pytest.raises(dt.OptionError):
        dt.IncreasingPenalty(factor=1.0)
