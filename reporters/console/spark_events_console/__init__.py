"""Prints events as they happen."""
