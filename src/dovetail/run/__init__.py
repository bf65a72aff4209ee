"""The parts of one solve: its context, clock, incumbent, progress, trace and result."""
