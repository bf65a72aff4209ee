"""Many small LPs of one shape at a time: multipliers by an interior-point method, and what they prove."""
