"""Applications that are slow for known causes, and how well ``spark-events why`` tells these."""
