"""An application whose user means no good: python hostile.py FOLDER. Its name is in spark.app.name."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tests.support.hostile_texts import LONG_MESSAGE, TEXTS

folder = sys.argv[1]
spark = SparkSession.builder.getOrCreate()


def fails(action):
    try:
        action()
    except Exception as error:
        return len(str(error))
    raise AssertionError("it did not fail")


def message(size):
    return F.raise_error(F.repeat(F.lit(LONG_MESSAGE), size))


spark.sparkContext.setJobDescription(TEXTS["escape"] * 50_000)
print("job", fails(spark.range(1).select(message(500_000)).collect))
spark.sparkContext.setJobDescription(None)

spark.createDataFrame([(1,)], "a int").write.parquet(f"{folder}/in")
stream = spark.readStream.schema("a int").parquet(f"{folder}/in")
for number, name in enumerate(("escape", "markup", "long")):
    query = (
        stream.select(message(550_000 if number == 0 else 1))
        .writeStream.queryName(TEXTS[name])
        .format("noop")
        .option("checkpointLocation", f"{folder}/checkpoint-{number}")
        .start()
    )
    print("query", fails(query.awaitTermination))
spark.sql(f"SELECT '{'x' * 300_000}' AS a").collect()
spark.range(1).collect()
spark.stop()
