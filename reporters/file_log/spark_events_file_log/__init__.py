"""Writes events and spans to rotated files, one JSON object a line."""
