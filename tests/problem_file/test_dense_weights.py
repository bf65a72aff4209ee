"""Networks from their weights alone."""

from pathlib import Path

import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.problem_file import predictors
from dovetail.problem_file.predictors import ACTIVATIONS, dense_network


def saved(tmp_path, module):
    torch.save(module.state_dict(), tmp_path / "n.pt")
    return tmp_path / "n.pt"


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_chain_is_built_again(tmp_path, activation):
    torch.manual_seed(1)
    between = ACTIVATIONS[activation]
    net = nn.Sequential(
        nn.Linear(3, 5, bias=False), between(), nn.Linear(5, 4), between(), nn.Linear(4, 2)
    ).double()
    X = torch.randn(7, 3, dtype=torch.float64)
    found = dense_network(saved(tmp_path, net), activation)
    assert torch.equal(found(X), net(X))
    assert next(found.parameters()).dtype == torch.float64


class Nested(nn.Module):
    """The names of layers do not matter, their order does."""

    def __init__(self):
        super().__init__()
        self.inner = nn.ModuleDict({"a": nn.Linear(2, 3)})
        self.out = nn.Linear(3, 1)


def test_names_do_not_matter(tmp_path):
    module = Nested()
    found = dense_network(saved(tmp_path, module), "relu")
    X = torch.randn(4, 2)
    assert torch.equal(found(X), module.out(torch.relu(module.inner["a"](X))))


@pytest.mark.parametrize(
    "module",
    [
        nn.Conv1d(1, 2, 3),
        nn.LSTM(2, 3),
        nn.ReLU(),
        nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1)),
        nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3), nn.Linear(3, 1)),
        nn.ModuleList([nn.Linear(2, 3), nn.Linear(2, 1)]),
    ],
    ids=lambda module: type(module).__name__,
)
def test_what_is_no_chain_is_refused(tmp_path, module):
    with pytest.raises(dt.PredictorError, match=r"n\.pt holds no chain of dense layers"):
        dense_network(saved(tmp_path, module), "relu")


def test_files_that_hold_no_weights(tmp_path):
    torch.save({"epoch": 3}, tmp_path / "n.pt")
    with pytest.raises(dt.PredictorError, match="not weights alone"):
        dense_network(tmp_path / "n.pt", "relu")
    torch.save(nn.Linear(1, 1), tmp_path / "n.pt")
    with pytest.raises(dt.PredictorError, match="holds more than weights"):
        dense_network(tmp_path / "n.pt", "relu")


def as_safetensors(monkeypatch, module):
    """What the file would give: sorted by name, as its format has it."""
    weights = dict(sorted(module.state_dict().items()))
    monkeypatch.setattr(predictors, "load_weights", lambda file: weights)
    return Path("n.safetensors")


def test_where_a_file_keeps_no_order_numbers_do(monkeypatch):
    torch.manual_seed(2)
    chain = [nn.Linear(4, 4) if k % 2 == 0 else nn.ReLU() for k in range(13)]  # "10.bias" is before "2.bias"
    net, X = nn.Sequential(*chain), torch.randn(5, 4)
    assert torch.equal(dense_network(as_safetensors(monkeypatch, net), "relu")(X), net(X))


def test_where_nothing_says_the_order_it_is_refused(monkeypatch):
    with pytest.raises(dt.PredictorError, match="the names have no numbers for the order of the layers"):
        dense_network(as_safetensors(monkeypatch, Nested()), "relu")
