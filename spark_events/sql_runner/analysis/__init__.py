"""Analyses manifests with Spark: whether a query is right, and whether it has changed."""
