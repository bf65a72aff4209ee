"""Matrix products: Gemm, MatMul, Einsum."""

from __future__ import annotations

import torch
from torch import Tensor

from dovetail.predictors.onnx.node import Node
from dovetail.predictors.onnx.operators.operator import MANY, Kernel, Operator, plain


def _gemm(node: Node) -> Kernel:
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    flips_a, flips_b = bool(node.integer("transA", 0)), bool(node.integer("transB", 0))

    def run(a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
        a, b = a.t() if flips_a else a, b.t() if flips_b else b
        return alpha * torch.mm(a, b) if c is None else torch.addmm(c, a, b, beta=beta, alpha=alpha)

    return run


def _einsum(node: Node) -> Kernel:
    equation = node.text("equation")
    return lambda *values: torch.einsum(equation, *values)


MATRIX: dict[str, Operator] = {
    "Gemm": Operator(_gemm, 2, 3),
    "MatMul": plain(torch.matmul, 2, 2),
    "Einsum": Operator(_einsum, 1, MANY),
}
