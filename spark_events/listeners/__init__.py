"""Turns Spark's records into events, spans and metrics. No listener knows which source a record is from."""
