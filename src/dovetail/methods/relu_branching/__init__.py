"""Branch and bound over the signs of ReLUs, where the inputs lie in closed-form sets."""
