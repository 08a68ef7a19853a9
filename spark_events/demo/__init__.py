"""The jobs of ``spark-events demo``: a batch job, and a streaming query that fails once."""
