"""Local search over the cells of tree ensembles."""

from dovetail.methods.cell_descent.method import CellDescent

__all__ = ["CellDescent"]
