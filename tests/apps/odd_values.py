"""Hands every kind of value to ``spark_events.task``, inside tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

import spark_events
from tests.support import hostile_values

spark = SparkSession.builder.getOrCreate()
attachment = spark_events.attach(spark, strict=True)


def hand_over(numbers: Iterator[int]) -> Iterator[int]:
    """Hand each of them to each call."""
    from spark_events import task
    from tests.support.hostile_values import ODD  # not all of them can be pickled

    for number in numbers:
        value: Any = ODD[number]
        for metric in (task.metrics.counter, task.metrics.gauge, task.metrics.histogram):
            metric(value, label=value)
        counter, gauge, histogram = (
            task.metrics.counter("c"),
            task.metrics.gauge("g"),
            task.metrics.histogram("h"),
        )
        for each in (1, value):
            counter.inc(each)
            gauge.set(each)
            histogram.update(each)
        task.event("Odd", value, value, attribute=value)
        with task.span(value, attribute=value) as span:
            span.set_attribute(value, value)
        task.event("Handed", number=number)
        yield number


count = len(hostile_values.ODD)
handed = spark.sparkContext.parallelize(range(count), 2).mapPartitions(hand_over).count()
assert handed == count, handed
spark.stop()
attachment.wait_closed()
