"""Branch and bound over the signs of ReLUs, for inputs in closed-form sets."""
