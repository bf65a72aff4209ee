"""Products of outputs and inputs: values, gradients, bounds, in each tool."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LinearRegression
from torch import nn

import dovetail as dt
from dovetail.core.predictor import Predictor, as_predictor
from tests.tools import TOOLS, numbers


def network(inputs=2, outputs=2, dtype=torch.float64):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(inputs, 6), nn.ReLU(), nn.Linear(6, outputs)).to(dtype)


X = np.random.default_rng(0).uniform(-2, 2, size=(20, 3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("keep", [False, True])
def test_values_and_gradients(dtype, keep):
    net = network(dtype=dtype)
    product = dt.Product(net, output=[1, 0], input=[0, -1], extra=1, keep=keep)
    assert isinstance(product, Predictor) and as_predictor(product) is product
    with torch.no_grad():
        Y = net(torch.tensor(X[:, :2], dtype=dtype)).double().numpy()
    wanted = np.column_stack([Y[:, 1] * X[:, 0], Y[:, 0] * X[:, 2]])
    wanted = np.column_stack([Y, wanted]) if keep else wanted
    assert np.array_equal(product.predict(X), wanted)
    copy = product.snapshot("cpu")
    U = torch.tensor(X, requires_grad=True)
    assert np.allclose(copy(U).detach().numpy(), wanted, atol=1e-5)
    assert torch.autograd.gradcheck(copy, (U,), atol=1e-5)
    description = product.describe(X)
    assert description.features == 3 and description.layers is None
    assert np.allclose(description.program(3).values(X), wanted, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_the_program_may_be_off_by_covers_what_is_seen(dtype):
    product = dt.Product(network(dtype=dtype), output=0, input=1)
    program = product.describe(X[:, :2]).program(2)
    points = X[:, :2]
    low, high, error = program.errors(program.arithmetic, points, points)
    seen = np.abs(product.predict(points) - program.values(points))
    assert np.all(seen <= error) and np.all(low - error <= high + error)


def test_two_variables_without_a_predictor():
    product = dt.Product(None, 0, 1)
    assert product.predict(X).tolist() == (X[:, :1] * X[:, 1:2]).tolist()
    problem = dt.Problem(dt.Mip([0.0, 0.0, 1.0], [[1.0, 1.0, 0.0]], 0.0, 4.0, upper=[9, 9, 99], sense="max"))
    problem.add_predictor(product, [0, 1], [2])
    result = dt.solve(problem, log=False)
    assert result.status is dt.Status.OPTIMAL and result.objective == pytest.approx(4.0, rel=1e-5)


def test_revenue_is_proved():
    """max p (4 - relu(p - 1) - p): 2 / 1 at p = 1, (5 - 2 p) p beyond: 3.125 at 1.25."""
    net = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1)).double()
    with torch.no_grad():
        net[0].weight[:], net[0].bias[:] = torch.tensor([[1.0], [1.0]]), torch.tensor([-1.0, 0.0])
        net[2].weight[:], net[2].bias[:] = torch.tensor([[-1.0, -1.0]]), torch.tensor([4.0])
    problem = dt.Problem(dt.Mip([0.0, 0.0, 1.0], upper=[3.0, 9.0, 99.0], sense="max"))
    problem.add_predictor(dt.Product(net, keep=True), [0], [1, 2])
    result = dt.solve(problem, log=False)
    assert result.status is dt.Status.OPTIMAL and result.objective == pytest.approx(3.125, rel=1e-6)
    assert result.x[:2] == pytest.approx([1.25, 2.5], abs=1e-2)


@pytest.mark.parametrize("kit", TOOLS, ids=str)
def test_in_each_tool(kit):
    model = kit.new()
    price = kit.variables(model, (2, 1), 0, 4, integer=True)
    sold = kit.variables(model, (2, 1), -99.0, 99.0)
    demand = lambda P: 6.0 - 2.0 * P  # noqa: E731
    dt.add_predictor_constr(model, dt.Product(demand), price, sold)
    kit.objective(model, [(1.0, kit.at(sold, (0, 0))), (1.0, kit.at(sold, (1, 0)))], "max")
    result = dt.solve(model, log=False)
    assert result.status is dt.Status.OPTIMAL and result.objective == 8.0
    prices = numbers(result.value(price)).ravel()
    assert np.all(prices * (6.0 - 2.0 * prices) == numbers(result.value(sold)).ravel())


def test_inputs_by_the_names_of_a_frame():
    frame = pd.DataFrame({"age": [0.0, 1.0, 2.0], "price": [1.0, 0.0, 3.0]})
    demand = LinearRegression().fit(frame, [3.0, 5.0, 1.0])
    said = dt.Product(demand, input="price").predict(X[:, :2])
    assert said[:, 0] == pytest.approx(
        demand.predict(frame.__class__(X[:, :2], columns=frame.columns)) * X[:, 1]
    )
    with pytest.raises(dt.PredictorError, match=r"Product: input is 'cost'; .* or one of age, price"):
        dt.Product(demand, input="cost").predict(X[:, :2])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: dt.Product(network(), output=2), "Product: output is 2; give a number from 0 to 1"),
        (lambda: dt.Product(network(), input="price"), "Product: input is 'price'"),
        (lambda: dt.Product(network(), input=True), "Product: input is True"),
        (lambda: dt.Product(network(), output=[0, 1], input=[0]), "2 outputs and 1 inputs"),
        (lambda: dt.Product(network(), extra=-1), "extra is -1"),
        (lambda: dt.Product(network(), keep="yes"), "keep is 'yes'"),
        (lambda: dt.Product(object()), "is not a predictor dovetail knows"),
    ],
)
def test_what_cannot_be_is_refused(make, words):
    problem = dt.Problem(dt.Mip(np.zeros(4), upper=1.0))
    with pytest.raises(dt.PredictorError, match=words):
        problem.add_predictor(make(), [0, 1], [2])
