"""The jobs of ``spark-events demo``: a batch job, a skewed join, and a streaming query that fails once."""
