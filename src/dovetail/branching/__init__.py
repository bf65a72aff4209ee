"""Branch and bound over boxes of variables and neurons, with one loop for all networks and trees."""
