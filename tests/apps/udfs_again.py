"""Two applications of one process use the same UDF and UDTF; the first also before it attaches."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import LongType

import spark_events
from spark_events import task

rows = task.counter("rows")
made = task.counter("made")


@F.udf(LongType())
def price(number: int) -> int:
    rows.inc()
    return number


@F.udtf(returnType="number: long")
class Twice:
    def eval(self, number: int):
        made.inc(2)
        yield (number,)
        yield (number,)


def use(spark: SparkSession) -> None:
    assert spark.range(10).agg(F.sum(price("id"))).head()[0] == 45
    assert Twice(F.lit(1)).count() == 2


for name in ("first", "second"):
    spark = SparkSession.builder.master("local[2]").appName(name).getOrCreate()
    if name == "first":
        use(spark)
    attachment = spark_events.attach(spark)
    use(spark)
    spark.stop()
    attachment.wait_closed()
