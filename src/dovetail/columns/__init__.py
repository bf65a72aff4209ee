"""Dual decomposition over coupling rows: columns of each component, prices on what they share."""
