"""scikit-learn's estimators: evaluated as their owner does, and rewritten as torch networks."""
