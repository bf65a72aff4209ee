"""What the page shows of each experiment: its tables, its figure, and a short reading."""
