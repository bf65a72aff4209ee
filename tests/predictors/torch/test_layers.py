"""What a module is known to be: layers only of modules that compute just them, in known arithmetic."""

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.core.predictor import as_predictor
from dovetail.networks.arithmetic import FLOAT32, FLOAT64, FORMATS

X = np.random.default_rng(0).normal(size=(40, 3))


def known(foreign):
    """What a bound may rest on, where it is known by its layers."""
    program = as_predictor(foreign).describe(X).program_if_known(3)
    return program if program is not None and program.provenance == "layers" else None


class TestKnown:
    def test_plain_modules_are_known(self):
        class Named(nn.Sequential):
            """A class that only builds."""

            def __init__(self):
                super().__init__(nn.Linear(3, 4), nn.ReLU(inplace=True))

        shared = nn.ReLU()
        once = nn.Linear(4, 4)
        net = nn.Sequential(Named(), nn.Dropout(), once, shared, once, shared, nn.Linear(4, 2, bias=False))
        program, kinds = as_predictor(net).program(3), ["dense", "relu"] * 3 + ["dense"]
        assert (program.arithmetic, program.provenance) == (FLOAT32, "layers")
        assert [getattr(layer, "kind", "dense") for layer in as_predictor(net).layers()] == kinds
        assert len(program.operations) == len(kinds)
        with torch.no_grad():
            truth = net.double().eval()(torch.tensor(X)).numpy()
        assert program.values(X) == pytest.approx(truth, abs=1e-12)

    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
    def test_the_arithmetic_is_that_of_the_dtype(self, dtype):
        assert known(nn.Linear(3, 1, dtype=dtype)).arithmetic is FORMATS[str(dtype).removeprefix("torch.")]

    @pytest.mark.parametrize(
        "module",
        [
            nn.Softplus(beta=2.0),
            nn.Softplus(threshold=5.0),
            nn.Softmax(dim=0),
            nn.GELU(),
            nn.BatchNorm1d(3),
            nn.utils.parametrizations.weight_norm(nn.Linear(3, 3)),
            nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3)),
            nn.utils.spectral_norm(nn.Linear(3, 3)),
            torch.jit.trace(nn.Linear(3, 3), torch.zeros(1, 3)),
            nn.LazyLinear(2, bias=False),
        ],
        ids=lambda module: type(module).__name__,
    )
    def test_other_modules_are_not(self, module):
        with torch.no_grad():
            module.eval()(torch.zeros(1, 3))
        predictor = as_predictor(nn.Sequential(module))
        if type(module) is nn.Linear:  # a lazy one has become one
            assert known(predictor) is not None or module._forward_pre_hooks
            return
        assert known(predictor) is None
        with pytest.raises(dt.UnsupportedError, match="cannot be written out"):
            predictor.layers()

    def test_a_function_of_torch_that_was_replaced_shows_in_the_graph(self, monkeypatch):
        predictor = as_predictor(nn.Sequential(nn.Linear(3, 2), nn.ReLU()))
        assert known(predictor) is not None
        plain = nn.functional.relu
        monkeypatch.setattr(nn.functional, "relu", lambda x, inplace=False: plain(x) + 1.0)
        with pytest.raises(dt.UnsupportedError, match="does not carry out"):
            predictor.layers()

    def test_weights_that_are_no_plain_tensors_are_not_known(self):
        class Odd(nn.Parameter):
            pass

        net = nn.Linear(3, 1)
        net.weight = Odd(net.weight.detach())
        assert known(net) is None

    def test_nothing_is_claimed_where_products_may_be_coarser(self):
        net = as_predictor(nn.Linear(3, 1)).describe(X)
        exact = as_predictor(nn.Linear(3, 1, dtype=torch.float64)).describe(X)
        with torch.autocast("cpu"):
            assert net.program(3).arithmetic is None
        torch.set_float32_matmul_precision("high")
        try:
            assert net.program(3).arithmetic is None
            assert exact.program(3).arithmetic is FLOAT64
        finally:
            torch.set_float32_matmul_precision("highest")
        assert net.program(3).arithmetic is FLOAT32
