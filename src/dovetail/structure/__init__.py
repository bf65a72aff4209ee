"""What a problem is made of, in one description that everybody asks."""
