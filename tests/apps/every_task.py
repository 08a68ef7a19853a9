"""Tasks whose code knows nothing of spark-events: python every_task.py FOLDER. Writes where each was in a trace."""

import json
import sys
from pathlib import Path

from opentelemetry import trace
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

import spark_events

folder = Path(sys.argv[1])
spark = SparkSession.builder.appName("every-task").getOrCreate()
attachment = spark_events.attach(spark, strict=True)
sc = spark.sparkContext


def place(rows):
    context = trace.get_current_span().get_span_context()
    yield TaskContext.get().partitionId(), f"{context.trace_id:032x}", f"{context.span_id:016x}"


@udf("long")
def inverse(number):
    left = 997 - number
    return 1_000 // left


places = [sc.parallelize(range(4), 4).mapPartitions(place).collect() for _ in range(2)]
(folder / "places.json").write_text(json.dumps(places))
sc.parallelize(range(205), 205).map(str).count()
spark.range(0, 100, 1, 4).selectExpr("sum(id)").collect()
try:
    spark.range(0, 1_000, 1, 4).select(inverse("id")).write.format("noop").mode("overwrite").save()
except Exception as error:
    assert "ZeroDivisionError" in str(error)
spark.stop()
attachment.wait_closed()
