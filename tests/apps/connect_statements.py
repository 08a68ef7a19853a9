"""A driver that serves Spark Connect, and a client whose statements it runs; the argument is a folder."""

import os
import subprocess
import sys

from pyspark.sql import SparkSession

PORT = "spark.connect.grpc.binding.port"

if len(sys.argv) == 2:
    spark = SparkSession.builder.appName("served").getOrCreate()
    spark.sql("CREATE TABLE orders USING parquet AS SELECT id, id * 2 AS amount FROM range(10)")
    # A client that knows of this driver's master would start one of its own.
    own = ("SPARK", "PYSPARK", "MASTER")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    command = [sys.executable, __file__, sys.argv[1], spark.conf.get(PORT)]
    subprocess.run(command, env=environment, check=True)
else:
    spark = SparkSession.builder.remote(f"sc://127.0.0.1:{sys.argv[2]}").getOrCreate()
    grouped = "SELECT id % 3 AS rest, sum(amount) AS total FROM orders GROUP BY 1"
    spark.sql(f"CREATE TABLE totals USING parquet AS {grouped}")
    spark.table("totals").where("rest = 1").select("total").write.parquet(f"{sys.argv[1]}/ones")
spark.stop()
