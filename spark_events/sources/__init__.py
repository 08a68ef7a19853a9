"""Where Spark's records come from: the driver's listener bus. Every source yields the same records."""
