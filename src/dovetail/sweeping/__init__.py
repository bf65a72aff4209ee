"""Many solves: `sweep` makes cases of a grid, has processes solve them (solved_cases), and keeps all rows."""
