"""Many solves: `sweep` makes cases of a grid, solves them in processes, and keeps all rows."""
