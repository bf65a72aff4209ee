"""Branch and bound over boxes of cells of tree ensembles."""

from dovetail.methods.cell_branching.method import CellBranching

__all__ = ["CellBranching"]
