"""Prices on coupling rows, columns from every component, a master to join them."""

from dovetail.methods.column_generation.method import ColumnGeneration

__all__ = ["ColumnGeneration"]
