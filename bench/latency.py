"""How long it takes from a Spark event to its receipt by an OTLP server, at defaults."""

from __future__ import annotations

import statistics
import time

from bench import table
from bench.sink import Sink

_JOBS = 400


def main() -> None:
    """Run many small jobs and compare the time in each event with the time of its receipt."""
    from pyspark.sql import SparkSession

    import spark_events

    sink = Sink()
    builder = SparkSession.builder.master("local[2]").appName("latency").config("spark.ui.enabled", "false")
    builder = builder.config("spark.events.reporter.otel.factory.class", "otlp")
    spark = builder.config("spark.events.reporter.otel.exporter.endpoint", sink.endpoint).getOrCreate()
    attachment = spark_events.attach(spark, strict=True)
    for _ in range(_JOBS):
        spark.range(0, 2, 1, 2).write.format("noop").mode("overwrite").save()
        time.sleep(0.02)
    spark.stop()
    attachment.wait_closed()
    sink.close()
    # Of jobs, whose times are Spark's own; the first ones meet a JVM that is still warming up.
    took = sorted(
        (received - happened) / 1e6
        for name, kind, happened, received in sink.received[100:]
        if name == "JobStatusChangeEvent" and kind == "job"
    )
    percentiles = statistics.quantiles(took, n=100)
    table.write(
        "latency",
        [
            f"{len(took)} events of small jobs, from Spark's timestamp to the receipt by an OTLP server; "
            f"`make bench` ({table.machine()}):",
            "",
            "| median | 99th percentile | longest |",
            "| --- | --- | --- |",
            f"| {percentiles[49]:.0f} ms | {percentiles[98]:.0f} ms | {took[-1]:.0f} ms |",
        ],
    )


if __name__ == "__main__":
    main()
