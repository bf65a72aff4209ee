"""What is proved, in arithmetic that cannot claim too much: boxes, dual values, trees of LPs, rays."""
