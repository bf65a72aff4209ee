"""Benchmark networks: shapes and names."""

import pytest
import torch

import dovetail as dt
from dovetail_study.problems import networks


@pytest.mark.parametrize("kind", ["2x16", "6x128", "conv1d", "residual", "residual-3x8", "lstm"])
def test_shapes(kind):
    net = networks.build(kind, 9, 2)
    assert net(torch.zeros(5, 9)).shape == (5, 2)


def test_a_name_says_the_size():
    net = networks.build("4x32", 9)
    layers = [part for part in net if isinstance(part, torch.nn.Linear)]
    assert [layer.out_features for layer in layers] == [32, 32, 32, 32, 1]


@pytest.mark.parametrize("kind", ["2y16", "0x4", "4x0", "transformer", ""])
def test_unknown_names_are_refused(kind):
    with pytest.raises(dt.OptionError):
        networks.build(kind, 9)
    with pytest.raises(dt.OptionError, match="init"):
        networks.build("2x16", 9, init="xavier")
