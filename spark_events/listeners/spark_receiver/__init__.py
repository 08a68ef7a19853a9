"""The names of the collector's Spark receiver."""
