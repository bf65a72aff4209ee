"""Lines below and above a ReLU: both hold, and the lower one rises where it is worth it."""

import torch

from dovetail.bounds.planes.relaxation import STEEP, goes_on, relu_lines

LOWER = torch.tensor([[-1.0, -1.0, -4.0, 1.0, -3.0]], dtype=torch.float64)
UPPER = torch.tensor([[3.0, 1.5, 1.0, 2.0, -1.0]], dtype=torch.float64)


def test_a_line_rises_where_much_more_is_above_zero():
    assert goes_on(LOWER, UPPER)[0, :3].tolist() == [1.0, 0.0, 0.0]
    edge = torch.tensor([[-1.0, -1.0]], dtype=torch.float64)
    ends = torch.tensor([[0.99 * STEEP, 1.01 * STEEP]], dtype=torch.float64)
    assert goes_on(edge, ends).tolist() == [[0.0, 1.0]]


def test_both_lines_hold_over_the_range():
    found = relu_lines(LOWER, UPPER)
    for part in torch.linspace(0.0, 1.0, 21, dtype=torch.float64):
        z = LOWER + part * (UPPER - LOWER)
        below = found.below_slopes[0] * z + found.below_offset
        above = found.above_slopes[0] * z + found.above_offset
        assert bool((below <= z.relu()).all() and (above >= z.relu() - 1e-15).all())
