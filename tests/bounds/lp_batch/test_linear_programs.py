"""Many LPs at a time: what multipliers prove is never above the truth, and good ones prove nearly all."""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from dovetail.bounds.batch_lps import InteriorPoint, LinearPrograms, multipliers, proved

COUNT = 24


def programs(columns, rows, seed, *, tight=0.3):
    """Random ones, the first row an equation, feasible or not by `tight`."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(COUNT, rows, columns))
    lower = rng.normal(size=(COUNT, columns))
    upper = lower + rng.exponential(size=(COUNT, columns))
    middle = (A @ ((lower + upper) / 2)[:, :, None])[:, :, 0]
    row_lower = middle - tight * rng.exponential(size=(COUNT, rows))
    row_upper = np.full((COUNT, rows), np.inf)
    row_lower[:, 0] = row_upper[:, 0] = middle[:, 0]
    parts = (rng.normal(size=columns) * 10.0, 3.0, A, row_lower, row_upper, lower, upper)
    return LinearPrograms(*(torch.as_tensor(part) if np.ndim(part) else part for part in parts))


def truths(p):
    """(N,) by scipy; infinity where there is no solution."""
    values = []
    for k in range(len(p.lower)):
        A, low, high = (t[k].numpy() for t in (p.rows, p.row_lower, p.row_upper))
        sides = np.concatenate([-low, high])
        finite = np.isfinite(sides)
        found = linprog(
            p.cost.numpy(),
            A_ub=np.vstack([-A, A])[finite],
            b_ub=sides[finite],
            bounds=np.column_stack([p.lower[k].numpy(), p.upper[k].numpy()]),
        )
        values.append(found.fun + p.offset if found.status == 0 else np.inf)
    return np.array(values)


@pytest.mark.parametrize(("columns", "rows", "seed"), [(5, 1, 0), (7, 4, 1), (20, 10, 2)])
def test_good_multipliers_prove_the_optimum(columns, rows, seed):
    p = programs(columns, rows, seed)
    y, points = multipliers(p)
    truth, bound = truths(p), proved(p, y).bound.numpy()
    assert np.all(bound <= truth)
    assert np.all(bound >= truth - 1e-6)
    assert np.allclose(points.numpy() @ p.cost.numpy() + p.offset, truth, atol=1e-4)


def test_any_multipliers_prove_something_true():
    p = programs(7, 4, 3)
    generator = torch.Generator().manual_seed(0)
    truth = truths(p)
    for scale in (1e-3, 1.0, 1e6):
        y = scale * torch.randn(COUNT, 4, generator=generator, dtype=torch.float64)
        assert np.all(proved(p, y).bound.numpy() <= truth)


def test_what_has_no_solution_gets_a_bound_beyond_everything():
    p = programs(6, 5, 4, tight=-2.0)
    endless = ~np.isfinite(truths(p))
    assert endless.sum() > 5
    assert np.all(proved(p, multipliers(p)[0]).bound.numpy()[endless] > 1e4)


def test_reduced_costs_bound_every_point():
    p = programs(7, 4, 5)
    found = proved(p, multipliers(p)[0])
    rng = np.random.default_rng(0)
    for share in rng.uniform(size=(50, 7)):
        z = p.lower + torch.as_tensor(share) * (p.upper - p.lower)
        activity = (p.rows @ z[:, :, None])[:, :, 0]
        fits = ((activity >= p.row_lower - 0.3) & (activity <= p.row_upper + 0.3)).all(1)
        moved = torch.where(found.reduced > 0, z - p.lower, z - p.upper) * found.reduced
        loose = 0.3 * found.multipliers.abs().sum(1)
        assert torch.all((z @ p.cost + p.offset >= found.bound + moved.amax(1) - loose)[fits])


def test_a_part_is_solved_on_its_own():
    p = programs(7, 4, 6)
    whole, apart = InteriorPoint(p), InteriorPoint(p)
    whole.run(12)
    apart.run(5)
    chosen = torch.arange(0, COUNT, 2)
    part = apart.take(chosen)
    part.run(7)
    apart.put(chosen, part)
    ours, theirs = proved(p, apart.multipliers).bound, proved(p, whole.multipliers).bound
    assert torch.allclose(ours[chosen], theirs[chosen], atol=1e-6)
    assert torch.all(ours <= theirs + 1e-6)
