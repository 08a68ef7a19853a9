"""The command ``spark-events why``."""
