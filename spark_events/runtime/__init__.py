"""Loads reporters from the configuration, and hands each what it asked for, on a thread of its own."""
