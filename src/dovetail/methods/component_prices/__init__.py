"""Components that share rows: bounds by the costs of components at prices."""
