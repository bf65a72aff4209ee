"""Boxes of tree ensembles as columns, where several samples share rows."""

from dovetail.methods.cell_columns.method import CellColumns

__all__ = ["CellColumns"]
