"""torch modules: evaluated as their owner does, copied into float64 for gradients, and read layer by
layer."""
