# %% [markdown]
# # A model and a network in files
#
# The planning system writes an MPS file, the laboratory an ONNX file. Neither changes. The [command
# line](../command_line.md) solves them without Python:
#
#     dovetail solve plan.mps --predictor 'strength.onnx:cement,ash,water->strength' --report page.html
#
# The model minimises the cost of a cubic metre of concrete from cement, ash and water (at most 700 kg, cement
# in bags of 25 kg) with a strength of at least 30 MPa. The network predicts the strength from the three
# amounts. This page uses Python to draw pictures.

# %% [setup]
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

import dovetail as dt

TIME_LIMIT = 10.0
folder = Path(tempfile.mkdtemp())

(folder / "plan.mps").write_text("""NAME          CONCRETE
ROWS
 N  COST
 L  MASS
 G  BAGS
 G  WATERY
COLUMNS
    cement    COST               0.11  MASS               1.0
    cement    BAGS              -1.0   WATERY            -0.4
    ash       COST               0.03  MASS               1.0
    ash       WATERY            -0.2
    water     COST               0.002 MASS               1.0
    water     WATERY             1.0
    MARKER                 'MARKER'                 'INTORG'
    bags      COST               0.5   BAGS              25.0
    MARKER                 'MARKER'                 'INTEND'
    strength  COST               0.0
RHS
    RHS       MASS             700.0
BOUNDS
 LO BOUND     cement           100.0
 UP BOUND     cement           500.0
 UP BOUND     ash              200.0
 LO BOUND     water            120.0
 UP BOUND     water            250.0
 UP BOUND     bags              20.0
 LO BOUND     strength          30.0
 UP BOUND     strength         120.0
ENDATA
""")

torch.manual_seed(1)
lab = torch.rand(1500, 3) * torch.tensor([440.0, 220.0, 150.0]) + torch.tensor([80.0, 0.0, 110.0])
strength = 95 * ((lab[:, 0] + 0.45 * lab[:, 1]) / (lab[:, 0] + 0.45 * lab[:, 1] + 2.2 * lab[:, 2])) ** 2 * 1.4
scale = torch.tensor([0.0025, 0.005, 0.005])
net = torch.nn.Sequential(torch.nn.Linear(3, 12), torch.nn.ReLU(), torch.nn.Linear(12, 1))
optimiser = torch.optim.Adam(net.parameters(), lr=0.03)
for _ in range(400):
    optimiser.zero_grad()
    loss = torch.nn.functional.mse_loss(net(lab * scale), strength[:, None] / 50)
    loss.backward()
    optimiser.step()
weights = {
    "W1": (net[0].weight * scale).T, "b1": net[0].bias, "W2": 50 * net[2].weight.T, "b2": 50 * net[2].bias
}  # fmt: skip
graph = helper.make_graph(
    [
        helper.make_node("Gemm", ["mix", "W1", "b1"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["active"]),
        helper.make_node("Gemm", ["active", "W2", "b2"], ["strength"]),
    ],
    "strength",
    [helper.make_tensor_value_info("mix", TensorProto.FLOAT, ["samples", 3])],
    [helper.make_tensor_value_info("strength", TensorProto.FLOAT, ["samples", 1])],
    [numpy_helper.from_array(value.detach().numpy(), name) for name, value in weights.items()],
)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), folder / "strength.onnx")
print(f"the network errs by {50 * loss.item() ** 0.5:.1f} MPa")

# %% [markdown]
# The user writes three lines. Variables have their names in the file.

# %%
problem = dt.Problem(dt.read(folder / "plan.mps"))
problem.add_predictor(
    str(folder / "strength.onnx"), ["cement", "ash", "water"], ["strength"], data=lab.numpy()
)
result = dt.solve(problem, time_limit=TIME_LIMIT, log=False)

print(f"{result.status}: {result.objective:.3f} a cubic metre, proved to be at least {result.bound:.3f}")
for name in ("cement", "ash", "water", "bags", "strength"):
    print(f"{name:9}{result.value(name):8.2f}")
print("beyond the laboratory's data:", len(result.extrapolations), "inputs")

# %%
cement, ash = np.meshgrid(np.linspace(100, 500, 61), np.linspace(0, 200, 41))
rows = np.column_stack([cement.ravel(), ash.ravel(), np.full(cement.size, result.value("water"))])
with torch.no_grad():
    predicted = 50 * net(torch.as_tensor(rows, dtype=torch.float32) * scale).numpy().reshape(cement.shape)
figure, axis = plt.subplots(figsize=(6.6, 3.4))
lines = axis.contour(cement, ash, predicted, levels=8, cmap="viridis", linewidths=1)
axis.clabel(lines, fmt="%.0f MPa", fontsize=8)
axis.contour(cement, ash, predicted, levels=[30.0], colors="#c2543b", linewidths=2)
axis.plot(result.value("cement"), result.value("ash"), "o", color="#c2543b")
axis.set(xlabel="cement, kg", ylabel="ash, kg", title="strength at the water that was chosen")
plt.show()

# %% [markdown]
# The red line is the required strength; the dot is the cheapest mix that whole bags allow. **Proved:** the
# bound printed above; no mix is cheaper for this network. The rounding of a float32 network leaves a gap of
# about 1e-6, and the status may be `feasible` instead of `optimal` ([Statuses](../claims.md)).
