"""Turns Spark's records into events, spans and metrics; no listener knows which source a record is from."""
