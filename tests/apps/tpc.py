"""The queries of TPC-H or TPC-DS, over the tables in a folder of Parquet files; prints the number of each that has run."""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

folder = Path(sys.argv[1])
spark = SparkSession.builder.appName(folder.name).getOrCreate()
for table in sorted(folder.glob("*.parquet")):
    spark.read.parquet(str(table)).createOrReplaceTempView(table.stem)
for number, sql in json.loads((folder / "queries.json").read_text()).items():
    spark.sql(sql).write.format("noop").mode("overwrite").save()
    print(number, flush=True)
spark.stop()
