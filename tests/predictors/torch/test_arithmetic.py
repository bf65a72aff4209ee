"""What a recorded program is carried out in, or why that is not known."""

import pytest
import torch

from dovetail.core.errors import UnsupportedError
from dovetail.networks.arithmetic import FLOAT32, FLOAT64
from dovetail.predictors.torch.module import TorchPredictor, program_arithmetic
from tests.predictors.torch.networks import FEATURES, network


def program(name, dtype=torch.float32):
    return TorchPredictor(network(name).to(dtype)).program(FEATURES)


def test_the_coarsest_format_counts():
    assert program("GELU", torch.float64).arithmetic is FLOAT64
    assert program("conv2d").arithmetic is FLOAT32
    found = program_arithmetic(program("GELU"), [torch.float64], "cpu", recurrent=False)
    assert found is FLOAT32  # the inputs are


@pytest.mark.parametrize(("name", "recurrent"), [("conv1d", False), ("lstm", True)])
def test_whole_layers_on_a_gpu_are_not_known(name, recurrent):
    with pytest.raises(UnsupportedError, match="cuDNN"):
        program_arithmetic(program(name), [torch.float32], "cuda", recurrent=recurrent)
    found = program_arithmetic(program(name, torch.float64), [torch.float64], "cuda", recurrent=recurrent)
    assert found is FLOAT64


def test_transforms_on_a_processor_are_not_known(monkeypatch):
    monkeypatch.setattr(torch._C, "_get_nnpack_enabled", lambda: True)
    monkeypatch.setattr(torch._C, "_get_mkldnn_enabled", lambda: False)
    with pytest.raises(UnsupportedError, match="NNPACK"):
        program_arithmetic(program("conv1d"), [torch.float32], "cpu", recurrent=False)
    assert program("GELU").arithmetic is FLOAT32
