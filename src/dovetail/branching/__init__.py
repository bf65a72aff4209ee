"""Branch and bound over boxes of the host's columns and of the networks' neurons: one loop for all."""
