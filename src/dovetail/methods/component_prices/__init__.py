"""Components that share rows: columns, prices on these rows, and the costs of components at these prices."""
