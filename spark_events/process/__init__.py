"""What is replaced of Python's own in this process; nothing here needs more than the standard library."""
