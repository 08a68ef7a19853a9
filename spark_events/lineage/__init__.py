"""Which data each job reads and writes, down to columns, read from Spark's plans (FLIP-314)."""

from spark_events.lineage.edges import add_lineage_edges
from spark_events.lineage.preview import lineage_of
from spark_events.lineage.providers import provide, withdraw

__all__ = ["add_lineage_edges", "lineage_of", "provide", "withdraw"]
