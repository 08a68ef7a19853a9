"""Executors: their series, and how they went."""
