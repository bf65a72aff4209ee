"""A blend of four oils, in highspy; an ONNX file predicts its octane number.

dovetail makes the output variable. The second solve has a changed price and starts from the first result.
"""

import tempfile
from pathlib import Path

import highspy
import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

import dovetail as dt


def write_onnx(path: Path) -> None:
    """A trained network as any framework would export it: two dense layers."""
    torch.manual_seed(0)
    shares = torch.rand(2000, 4)
    octane = 88 + shares @ torch.tensor([4.0, 9.0, -3.0, 1.0]) + 6 * shares[:, 0] * shares[:, 2]
    net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    torch.nn.init.constant_(net[2].bias, 90.0)
    optimiser = torch.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(400):
        optimiser.zero_grad()
        torch.nn.functional.mse_loss(net(shares), octane[:, None]).backward()
        optimiser.step()
    weights = {name.replace(".", "_"): value.detach().numpy() for name, value in net.named_parameters()}
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["shares", "0_weight", "0_bias"], ["hidden"], transB=1),
            helper.make_node("Relu", ["hidden"], ["active"]),
            helper.make_node("Gemm", ["active", "2_weight", "2_bias"], ["octane"], transB=1),
        ],
        "octane",
        [helper.make_tensor_value_info("shares", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("octane", TensorProto.FLOAT, ["n", 1])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)


price = np.array([3.0, 5.5, 1.2, 2.0])
model = highspy.Highs()
model.setOptionValue("output_flag", False)
share = model.addVariables(4, lb=0, ub=1, name_prefix="share")
model.addConstr(sum(share[k] for k in range(4)) == 1)
used = model.addBinaries(4)
for k in range(4):
    model.addConstr(share[k] <= used[k])
    model.addConstr(share[k] >= 0.1 * used[k])
model.addConstr(sum(used[k] for k in range(4)) <= 3)
model.minimize(sum(float(price[k]) * share[k] for k in range(4)))

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "octane.onnx"
    write_onnx(path)
    constr = dt.add_predictor_constr(model, path, share)
model.addConstr(constr.output[0, 0] >= 92.0)

first = dt.solve(model, time_limit=5)
print("shares", first.value(share).round(3), "octane", constr.output_values.round(2), first)

model.changeColCost(share[0].index, 5.0)
second = dt.solve(model, time_limit=5, start=first, log=False)
print("shares", second.value(share).round(3), "octane", constr.output_values.round(2), second)
