"""A heat pump over 24 hours, in linopy; a residual network predicts its output.

The outside temperature is a fixed feature of each hour, the level an integer. Tools that write networks as
constraints have no formulation for a residual network with LayerNorm.
"""

import numpy as np
import pandas as pd
import torch
from linopy import Model

import dovetail as dt

HOURS = pd.RangeIndex(24, name="hour")


class HeatPump(torch.nn.Module):
    """Heat from level (0 to 4), flow temperature and outside temperature."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.middle = torch.nn.Linear(3, 24), torch.nn.Linear(24, 24)
        self.norm, self.leave = torch.nn.LayerNorm(24), torch.nn.Linear(24, 1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """One row per hour."""
        hidden = torch.nn.functional.silu(self.enter(features * torch.tensor([0.25, 0.02, 0.05])))
        return self.leave(hidden + torch.nn.functional.silu(self.middle(self.norm(hidden))))


torch.manual_seed(0)
seen = torch.rand(3000, 3) * torch.tensor([4.0, 30.0, 25.0]) + torch.tensor([0.0, 30.0, -10.0])
level, flow, outside = seen.T
heat = level * (3.2 + 0.06 * outside - 0.03 * (flow - 30)) - 0.12 * level**2
pump = HeatPump()
optimiser = torch.optim.Adam(pump.parameters(), lr=0.01)
for _ in range(300):
    optimiser.zero_grad()
    torch.nn.functional.mse_loss(pump(seen), heat[:, None]).backward()
    optimiser.step()

hours = np.arange(24)
temperature = 4 - 6 * np.cos((hours - 3) / 24 * 2 * np.pi)
price = 0.25 + 0.1 * np.sin((hours - 8) / 24 * 4 * np.pi)
need = 5.0 - 0.15 * temperature

model = Model()
run = model.add_variables(lower=0, upper=4, coords=[HOURS], name="level", integer=True)
warm = model.add_variables(lower=30, upper=60, coords=[HOURS], name="flow")
made = model.add_variables(coords=[HOURS], name="heat")
stored = model.add_variables(lower=0, upper=12, coords=[HOURS], name="stored")
model.add_constraints(stored.isel(hour=slice(1, None)) - stored.shift(hour=1).isel(hour=slice(1, None))
                      - made.isel(hour=slice(1, None)) == -need[1:], name="tank")  # fmt: skip
model.add_constraints(stored.at[0] - made.at[0] == 4.0 - need[0], name="begin")
model.add_constraints(warm >= 38, name="showers")
model.add_objective((run * price).sum() + 0.002 * warm.sum())

features = [[run.at[h], warm.at[h], temperature[h]] for h in hours]
constr = dt.add_predictor_constr(model, pump, features, made, data=seen.numpy())

result = dt.solve(model, time_limit=10)

print("level ", run.solution.values.astype(int))  # the values are in the model
print("stored", stored.solution.values.round(1))
print(f"cost {result.objective:.3f}, largest error {constr.get_error().max():.1e}")
