"""Boxes of tree ensembles as columns, for several samples that share rows."""

from dovetail.methods.cell_columns.method import CellColumns

__all__ = ["CellColumns"]
