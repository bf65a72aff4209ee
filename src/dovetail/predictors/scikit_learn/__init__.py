"""scikit-learn's estimators: asked as their owner does, and written once more as torch networks."""
