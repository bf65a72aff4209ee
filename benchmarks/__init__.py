"""Measurements: where the time goes, how it grows, how good the answers are. Nothing passes or fails."""
