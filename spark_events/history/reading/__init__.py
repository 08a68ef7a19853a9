"""Stored events, read by DuckDB in this process or by Spark, as facts."""
