"""torch modules: run as their owner does, copied into float64 for gradients, known layer by layer."""
