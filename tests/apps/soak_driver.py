"""A driver whose query reads the files of a folder, until it is told, or made, to end."""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

folder = Path(sys.argv[1])
spark = SparkSession.builder.master("local[1]").appName(folder.name).getOrCreate()
if "--attach" in sys.argv:
    import spark_events

    spark_events.attach(spark)


@udf("string")
def checked(line):
    """Fail on the word poison."""
    if line == "poison":
        raise ValueError("poison")
    return line


query = (
    spark.readStream.text(str(folder / "in"))
    .select(checked("value").alias("value"))
    .writeStream.queryName("orders")
    .format("noop")
    .trigger(processingTime="200 milliseconds")
    .option("checkpointLocation", str(folder / "checkpoint"))
    .start()
)
order = folder / "order"


def about_to_end():
    """Write down when: the stopwatch outside would see it late."""
    (folder / "ended-at").write_text(str(time.time()))


while True:
    try:
        if query.awaitTermination(0.1):
            break
    except Exception:
        about_to_end()
        raise
    said = order.read_text() if order.exists() else ""
    if not said:
        continue
    order.unlink()
    about_to_end()
    if said == "stop":
        query.stop()
        spark.stop()
        sys.exit(0)
    if said.startswith("exit "):
        sys.exit(int(said.removeprefix("exit ")))
    raise KeyError("customer")
