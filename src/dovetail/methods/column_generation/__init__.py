"""Column generation: a pool of columns, a master LP with its prices, pricing, a restricted master MIP."""

from dovetail.methods.column_generation.method import ColumnGeneration

__all__ = ["ColumnGeneration"]
