"""Algorithm 1 in numpy, sharing nothing with ours: x by trying every point, u by a formula."""

from dataclasses import dataclass

import numpy as np


@dataclass
class History:
    """What each iteration left, from the first on."""

    x: np.ndarray
    u: np.ndarray
    price: np.ndarray
    merit: np.ndarray
    """L(x(k), u(k), lambda(k))."""

    @property
    def apart(self):
        return np.linalg.norm(self.u - self.x, axis=1)

    @property
    def moved(self):
        """|u(k) - u(k-1)| from the second iteration on."""
        return np.linalg.norm(np.diff(self.u, axis=0), axis=1)


def quadratic_step(Q, b, rho, a=None, most=np.inf):
    """u of least 1/2 u'Qu - b'u + lambda'u + rho/2 |u - x|^2 over a'u <= most."""
    H = Q + rho * np.eye(len(b))

    def step(x, price, u):
        least = np.linalg.solve(H, b - price + rho * x)
        if a is not None and a @ least > most:
            across = np.linalg.solve(H, a)
            least = least - across * ((a @ least - most) / (a @ across))
        return least

    return step


def algorithm1(X, cost, g, step, rho, iterations, price=None, u=None):
    """The loop: `step(x, price, u)` is the network step; X is all its points, or a projection onto it."""
    p = len(cost)
    price = np.zeros(p) if price is None else price
    u = np.zeros(p) if u is None else u
    kept = []
    for _ in range(iterations):
        if callable(X):
            x = X(u - (cost - price) / rho)
        else:
            x = X[np.argmin(X @ (cost - price) + 0.5 * rho * ((X - u) ** 2).sum(axis=1))]
        u = step(x, price, u)
        price = price + rho * (u - x)
        merit = cost @ x + g(u) + price @ (u - x) + 0.5 * rho * (u - x) @ (u - x)
        kept.append((x, u, price, merit))
    return History(*map(np.array, zip(*kept, strict=True)))
