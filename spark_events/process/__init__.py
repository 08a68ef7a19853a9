"""How this process ends, and what of Python's own is replaced to know it, by the standard library alone."""
