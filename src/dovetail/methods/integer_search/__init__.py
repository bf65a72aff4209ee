"""Local search over the integers, every neighbour judged by the networks themselves."""

from dovetail.methods.integer_search.method import IntegerLocalSearch

__all__ = ["IntegerLocalSearch"]
