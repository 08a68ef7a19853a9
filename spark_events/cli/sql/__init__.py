"""The commands of ``spark-events sql``."""
