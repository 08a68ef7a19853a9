"""Hands every kind of value to ``spark_events.task``, inside tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

import spark_events
from tests.support.hostile_values import ODD

spark = SparkSession.builder.getOrCreate()
attachment = spark_events.attach(spark, strict=True)


def hand_over(numbers: Iterator[int]) -> Iterator[int]:
    """Hand each of them to each call."""
    from spark_events import task

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


handed = spark.sparkContext.parallelize(range(len(ODD)), 2).mapPartitions(hand_over).count()
assert handed == len(ODD), handed
spark.stop()
attachment.wait_closed()
