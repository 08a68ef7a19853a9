"""Runs of one application, one after the other, each with so many lines of 10 kB; 25 ms in Python for each.

Prints how many ms each took.
"""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

import spark_events

folder, lines = Path(sys.argv[1]), [int(number) for number in sys.argv[2].split(",")]


def slowly(text):
    time.sleep(0.025)
    return text


# A first job loads classes and starts Python, which on a busy machine takes longer than a night.
spark = SparkSession.builder.master("local[2]").appName("warm-up").getOrCreate()
spark.range(10).select(udf(slowly)("id").alias("id")).write.format("noop").mode("overwrite").save()
spark.stop()
for number, rows in enumerate(lines):
    spark = SparkSession.builder.master("local[2]").appName("nightly").getOrCreate()
    spark_events.attach(spark)
    source = folder / f"input-{number}.txt"
    source.write_text("".join(f"{row}" + "x" * 10_000 + "\n" for row in range(rows)))
    text = spark.read.text(str(source)).coalesce(1).select(udf(slowly)("value").alias("value"))
    began = time.monotonic()
    text.write.format("noop").mode("overwrite").save()
    print(f"took {int(1_000 * (time.monotonic() - began))}", flush=True)
    spark.stop()
