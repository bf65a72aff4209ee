"""Branch and bound over the inputs that all networks read together."""
