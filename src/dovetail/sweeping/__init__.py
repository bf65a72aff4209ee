"""Many solves: `sweep` makes cases of a grid, has a runner solve them, and keeps every row as it comes.

What runs the cases is one small protocol (runner); today's runner are processes on this machine
(local_processes), each of which solves one case after the other (worker).
"""
