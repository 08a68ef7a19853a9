"""Spark's event logs as a source: found, decompressed, read, replayed and followed."""
