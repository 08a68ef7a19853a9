"""An application that is killed, with its JVM, as soon as it is attached to."""

import os
import signal

from pyspark.sql import SparkSession

import spark_events

spark = SparkSession.builder.master("local[1]").appName("killed-at-once").getOrCreate()
jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())
spark_events.attach(spark)
os.kill(jvm, signal.SIGKILL)
os.kill(os.getpid(), signal.SIGKILL)
