"""``spark-events run``: spark-submit as it is, with a driver's Python that attaches by itself."""
