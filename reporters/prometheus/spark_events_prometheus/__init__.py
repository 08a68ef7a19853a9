"""Serves metrics for Prometheus to scrape."""
