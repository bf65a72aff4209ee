"""Prices on coupling rows, and the exact least cost of every block at them: a bound for coupled problems."""

from dovetail.methods.block_prices.method import BlockPrices, priced_blocks

__all__ = ["BlockPrices", "priced_blocks"]
