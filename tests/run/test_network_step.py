"""The network step's own arithmetic: objective, rows, and classes as gradients see them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dovetail.run.network_step import AugmentedTerms, NetworkBlock, Rows, relative_logit


def block(classifies=False, probability=False, threshold=0.0, spread=1.0, outputs=1):
    ones = torch.ones(2, 1, dtype=torch.float64)
    return NetworkBlock(
        name="net",
        forward=lambda u: torch.cat([u * (k + 1) for k in range(outputs)], dim=1),
        smooth=True,
        classifies=classifies,
        probability=probability,
        threshold=threshold,
        spread=torch.tensor([spread], dtype=torch.float64),
        lower=-ones,
        upper=ones,
        scale=ones,
        rows=None,
    )


U = torch.tensor([[0.5], [-0.25]], dtype=torch.float64)


def test_the_objective_is_the_formula_sample_by_sample():
    one = torch.ones_like(U)
    terms = AugmentedTerms(
        x=0.0 * U, multiplier=2.0 * one, weight=4.0 * one, y=one, output_multiplier=one, output_weight=0.0 * U
    )
    expected = 2.0 * U + 2.0 * U**2 + (3.0 * U - 1.0)
    assert torch.allclose(terms.value(U, 3.0 * U), expected[:, 0])
    assert torch.equal(terms.take(torch.tensor([False, True])).value(U[1:], 3.0 * U[1:]), expected[1:, 0])


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.9])
def test_a_probability_is_searched_as_a_logit(threshold):
    p = torch.tensor([[0.1], [threshold], [0.95]], dtype=torch.float64)
    logits = relative_logit(p, threshold, probability=True)
    assert torch.equal(logits >= -1e-12, p >= threshold)
    assert torch.equal(relative_logit(p, threshold, probability=False), p - threshold)


def test_classes_are_soft_for_gradients():
    one = block(classifies=True, threshold=0.25, spread=2.0)
    values = one.values(U)
    assert torch.allclose(values, U - 0.25)
    assert torch.allclose(one.outputs(values), torch.sigmoid(values / 2.0))
    several = block(classifies=True, outputs=2)
    assert torch.allclose(several.outputs(several.values(U)).sum(dim=1), torch.ones(2).double())


@pytest.mark.parametrize("outputs", [1, 2, 4])
def test_surrogates_are_functions_of_the_probability(outputs):
    """By numpy, from the probabilities alone."""
    z = np.random.default_rng(0).normal(scale=3.0, size=(2, outputs))
    p = 1.0 / (1.0 + np.exp(-z)) if outputs == 1 else np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    expected = {"logit": np.log(p / (1.0 - p)), "log-probability": np.log(p), "probability": p}
    several = block(classifies=True, outputs=outputs, spread=2.0)
    for surrogate, values in expected.items():
        found = replace(several, surrogate=surrogate).outputs(torch.tensor(z))
        assert np.allclose(found.numpy(), values, atol=1e-12)
    scaled, halved = several.outputs(torch.tensor(z)), replace(several, surrogate="probability")
    assert torch.allclose(scaled, halved.outputs(torch.tensor(z) / 2.0))


def test_regressions_are_their_values():
    assert torch.equal(block().outputs(block().values(U)), U)


def test_rows_of_some_samples():
    eye = torch.ones(2, 1, 1, dtype=torch.float64)
    rows = Rows(eye, 2.0 * eye, -U, U, (("a",), ("b",)))
    assert torch.allclose(rows.activity(U, U), 3.0 * U)
    taken = rows.take(torch.tensor([False, True]))
    assert taken.names == (("b",),)
    assert torch.equal(taken.upper, U[1:])
