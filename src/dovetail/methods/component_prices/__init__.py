"""Components that share rows: columns, prices on these rows, and what components cost at them."""
