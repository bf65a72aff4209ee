"""What is shown: the lines of a log, a result as a page, several beside each other."""
