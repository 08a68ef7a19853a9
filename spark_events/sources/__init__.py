"""Where Spark's records come from, and one start-up for all; every source yields the same records."""
