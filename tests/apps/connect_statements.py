"""A driver that serves Spark Connect, and a client whose statements and streaming queries it runs.

The argument is a folder.
"""

import os
import subprocess
import sys
import time

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

    def start(name, checkpoint="", **trigger):
        rate = spark.readStream.format("rate").option("numPartitions", 1).load()
        writer = rate.writeStream.queryName(name).trigger(**trigger)
        if not checkpoint:
            return writer.format("noop").start()
        folder = f"{sys.argv[1]}/{checkpoint}"
        return writer.option("checkpointLocation", f"{folder}-state").format("parquet").start(folder)

    def wait_for(is_reached):
        while not is_reached():
            time.sleep(0.1)

    stopped = start("stopped", "ticks", processingTime="1 hour")  # so it is stopped between two batches
    wait_for(lambda: stopped.lastProgress)
    stopped.stop()
    again = start("stopped", "ticks", processingTime="1 hour")
    wait_for(lambda: again.lastProgress)
    continuous = start("continuous", continuous="100 milliseconds")
    wait_for(lambda: "Committing epoch 2" in continuous.status["message"])
    continuous.stop()
    again.stop()
    start("reached", availableNow=True).awaitTermination()
spark.stop()
