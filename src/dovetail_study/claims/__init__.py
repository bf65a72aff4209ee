"""What the paper claims, experiment by experiment, judged by the rows."""
