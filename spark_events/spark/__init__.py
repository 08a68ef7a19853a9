"""Spark's own surroundings: its configuration, sessions, Java, file systems and SQL text."""
