"""What the tables of several experiments share."""
