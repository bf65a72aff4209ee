"""What is learnt about a problem before a method starts: boxes, and what the host alone proves."""
