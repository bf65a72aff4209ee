"""What a solve is: its context, clock, incumbent, progress, trace and result."""
