"""What is seen of a predictor before it is accepted: its threshold, its rows, and what changed since."""

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from tests.tanh import problem_of, tanh_net, tanh_problem


class MixtureOfSigmoids(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = tanh_net(seed=1), tanh_net(seed=2)

    def forward(self, x):
        return 0.5 * torch.sigmoid(self.a(x)) + 0.5 * torch.sigmoid(self.b(x) - 3.0)


def test_a_mixture_of_sigmoids_is_asked_about():
    p = problem_of([1.0, 1.0], lower=[-2.0, -np.inf], upper=[2.0, np.inf])
    with pytest.raises(dt.PredictorError, match="threshold="):
        p.add_predictor(MixtureOfSigmoids(), [0], [1], output_type="classification")


class OverTheBatch(nn.Module):
    def forward(self, x):
        return (x - x.mean(0)) / (x.std(0) + 1e-5)


@pytest.mark.filterwarnings("ignore:std")
@pytest.mark.parametrize(
    "module",
    [OverTheBatch(), nn.BatchNorm1d(1, track_running_stats=False)],
    ids=["by hand", "BatchNorm1d"],
)
def test_normalising_over_the_batch_is_refused(module):
    p = problem_of([0.0, 1.0], lower=[0.0, -np.inf], upper=[1.0, np.inf])
    with pytest.raises(dt.PredictorError, match="other samples in the batch"):
        p.add_predictor(module, [0], [1])


def test_a_network_changed_after_it_was_added():
    p, network = tanh_problem()
    network.double()
    assert dt.check(p, dt.solve(p, log=False).x).within()
    network[2] = nn.Linear(8, 2).double()
    with pytest.raises(dt.PredictorError, match="changed since it was added"):
        dt.solve(p, log=False)
    with torch.no_grad():
        network[0].weight.fill_(torch.nan)
    with pytest.raises(dt.PredictorError, match="nan"):
        dt.solve(p, log=False)


class Cancelling(torch.nn.Module):
    """1e6 + x - 1e6 in float32, summed in another order from three rows on, as some library might."""

    def forward(self, rows):
        order = [0, 1, 2] if len(rows) < 3 else [0, 2, 1]
        terms = torch.stack([torch.full_like(rows, 1e6), rows, torch.full_like(rows, -1e6)])[order]
        return terms[0] + terms[1] + terms[2]


def test_rounding_that_depends_on_the_batch_is_no_influence_of_rows():
    """Off by 0.03 at values below 1, alone and in a batch: float32, and no fault of the network."""
    problem = dt.Problem(dt.Mip([0.0, 1.0], lower=[-1.0, -5.0], upper=[1.0, 5.0]))
    problem.add_predictor(Cancelling(), [0], [1])
    net = Cancelling()
    rows = torch.linspace(-1.0, 1.0, 7)[:, None]
    alone = torch.cat([net(row[None]) for row in rows])
    assert float(torch.max(torch.abs(net(rows) - alone))) > 1e-2


def test_rows_that_do_influence_each_other_are_refused():
    class Centred(torch.nn.Module):
        def forward(self, rows):
            return rows - rows.mean(dim=0)

    problem = dt.Problem(dt.Mip([0.0, 1.0], lower=[-1.0, -5.0], upper=[1.0, 5.0]))
    with pytest.raises(dt.PredictorError, match="must not influence each other"):
        problem.add_predictor(Centred(), [0], [1])


def test_a_function_that_raises_is_told_about_shapes_only_where_they_are_the_trouble():
    p = problem_of([0.0, 1.0], lower=[0.0, -np.inf], upper=[1.0, np.inf])
    with pytest.raises(dt.PredictorError, match="ZeroDivisionError: division by zero$"):
        p.add_predictor(lambda X: 1 / 0, [0], [1])
    with pytest.raises(
        dt.PredictorError, match="out of bounds.*as many variables per sample as it has features"
    ):
        p.add_predictor(lambda X: X[:, 1], [0], [1])
