"""``spark-events run``: spark-submit as it is, and the driver's Python that attaches by itself."""
