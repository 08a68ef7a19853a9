"""The command ``spark-events lineage``: what it asks, and how it prints what it is told."""
