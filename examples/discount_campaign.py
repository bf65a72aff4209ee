"""A discount campaign: which of thousands of customers get a letter, and which discount, under two budgets.

    python examples/discount_campaign.py 200000      number of customers; the default is 3,000

A network learns from last year's letters (made up) how likely a customer is to buy. Customers are equal
blocks with data of their own; they share the money for discounts and the number of letters.
"""

import sys

import numpy as np
import torch

import dovetail as dt

LETTER, MOST_OFF = 0.4, 0.3


def customers(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Three features of each customer, and the revenue of a sale."""
    return rng.standard_normal((count, 3)), rng.lognormal(2.0, 0.5, count)


def learn(rng: np.random.Generator) -> torch.nn.Module:
    """The chance of a sale by features, letter and discount, from 20,000 observations."""
    known, _ = customers(20_000, rng)
    letter = rng.integers(0, 2, 20_000)
    off = letter * rng.uniform(0.0, MOST_OFF, 20_000)
    pull = -2.0 + 0.8 * known[:, 0] + letter * (0.4 + 0.5 * known[:, 1]) + (6.0 + 4.0 * known[:, 2]) * off
    bought = rng.random(20_000) < 1.0 / (1.0 + np.exp(-pull))
    X = torch.as_tensor(np.column_stack([known, letter, off]), dtype=torch.float32)
    y = torch.as_tensor(bought, dtype=torch.float32)[:, None]
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(5, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1), torch.nn.Sigmoid()
    )
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(300):
        optimiser.zero_grad()
        torch.nn.functional.binary_cross_entropy(net(X), y).backward()
        optimiser.step()
    return net


if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000
    rng = np.random.default_rng(0)
    net = learn(rng)
    known, margin = customers(n, rng)

    problem = dt.Problem(sense="max")
    people = problem.add_template(
        n,
        {
            "known": dt.Family(fixed=known),
            "letter": dt.Family(upper=1.0, integer=True, cost=-LETTER),
            "off": dt.Family(upper=MOST_OFF),
            "buys": dt.Family(upper=1.0, cost=margin),
        },
        rows=[dt.FamilyRow({"off": 1.0, "letter": -MOST_OFF}, upper=0.0, name="only by letter")],
        coupling=[
            dt.FamilyRow({"off": margin}, upper=0.25 * n, name="money"),
            dt.FamilyRow({"letter": 1.0}, upper=0.3 * n, name="letters"),
        ],
    )
    problem.add_predictor(net, people["known", "letter", "off"], people["buys"])
    result = dt.solve(problem, time_limit=120.0)

    plan = people.values(result)
    written = plan["letter"][:, 0] > 0.5
    print(f"{written.sum():,} letters, {100 * plan['off'][written].mean():.1f} % off on average")
    with torch.no_grad():
        alone = net(torch.as_tensor(np.column_stack([known, np.zeros((n, 2))]), dtype=torch.float32)).numpy()
    print(f"expected profit {result.objective:,.0f}; without any letter {margin @ alone[:, 0]:,.0f}")
