"""Runs tasks on executors of two resource profiles: one that is there before attach, and one that comes later."""

from pyspark.resource import ExecutorResourceRequests, ResourceProfileBuilder, TaskResourceRequests
from pyspark.sql import SparkSession

import spark_events

spark = SparkSession.builder.appName("profiles").getOrCreate()


def run_with(mib):
    executor = ExecutorResourceRequests().cores(1).memory(f"{mib}m")
    profile = ResourceProfileBuilder().require(executor).require(TaskResourceRequests().cpus(1)).build
    print(
        spark.sparkContext.parallelize(range(3), 1).withResources(profile).map(lambda x: x).sum(), flush=True
    )


run_with(600)
spark_events.attach(spark)
run_with(700)
spark.stop()
