"""The commands that make events of Spark's event logs."""
