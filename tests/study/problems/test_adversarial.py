"""Adversarial examples: the model, the made-up digits, and a proof of how far an image can be turned."""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.methods.branching import Branching
from dovetail_study.problems.adversarial import CLASSES, PIXELS, adversarial
from tests.contexts import context_of


@pytest.fixture(scope="module")
def instance():
    return adversarial("2x12", budget=0.8, seed=3, epochs=12)


def changed(instance, moves):
    """The point of an image changed by so much."""
    x = np.zeros(instance.problem.mip.n_columns)
    x[:PIXELS] = instance.image + moves
    x[PIXELS : 2 * PIXELS], x[2 * PIXELS : 3 * PIXELS] = np.maximum(moves, 0.0), np.maximum(-moves, 0.0)
    with torch.no_grad():
        x[instance.logits] = instance.network(torch.as_tensor(x[None, :PIXELS]))[0].numpy()
    return x


def random_changes(instance, count, seed=0):
    """Within the budget and the pixels' range."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        moves = rng.normal(size=PIXELS) * (rng.random(PIXELS) < 0.2)
        moves = np.clip(instance.image + moves, 0.0, 1.0) - instance.image
        yield moves * min(1.0, 0.8 / np.abs(moves).sum())


def test_it_is_the_model_of_the_docstring(instance):
    mip = instance.problem.mip
    assert mip.sense == "max" and mip.n_columns == 3 * PIXELS + CLASSES and mip.n_rows == PIXELS + 1
    x = changed(instance, np.zeros(PIXELS))
    assert dt.check(instance.problem, x).within()
    logits = x[instance.logits]
    assert np.argmax(logits) == instance.label
    assert mip.objective(x) == pytest.approx(logits[instance.target] - logits[instance.label])
    assert mip.objective(x) == pytest.approx(np.sort(logits)[-2] - np.sort(logits)[-1])
    for moves in random_changes(instance, 5):
        assert dt.check(instance.problem, changed(instance, moves)).within()
    twice = changed(instance, 2.0 * moves)
    assert not dt.check(instance.problem, twice).within()


def test_the_proof_is_above_every_change_and_meets_the_best_point(instance):
    context = context_of(instance.problem)
    outcome = Branching().solve(context)
    mip, incumbent = instance.problem.mip, context.incumbent
    assert incumbent.proved, outcome.message
    for moves in random_changes(instance, 200):
        assert mip.objective(changed(instance, moves)) <= incumbent.objective + 1e-6


def test_bad_sizes():
    for wrong in ({"budget": 0.0}, {"budget": np.inf}):
        with pytest.raises(dt.OptionError, match="budget"):
            adversarial(**wrong)
    with pytest.raises(dt.OptionError, match="held-out images"):
        adversarial("1x4", epochs=1, sample=10_000)
