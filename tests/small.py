"""Small problems with known answers: those of the public suites serve all tests."""

from dovetail.testing.problems import Parabola, bowl, busy, knapsack, linear_net, random_mlp

__all__ = ["Parabola", "bowl", "busy", "knapsack", "linear_net", "random_mlp"]
