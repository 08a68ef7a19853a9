"""Streaming queries: their runs, checkpoints and sources."""
