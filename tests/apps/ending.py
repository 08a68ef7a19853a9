"""An application that ends in the way that its argument names."""

import atexit
import os
import signal
import sys
import time
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

how = sys.argv[1]
spark = SparkSession.builder.master("local[1]").appName("ending").getOrCreate()
if "--attach" in sys.argv:
    import spark_events

    spark_events.attach(spark)
spark.range(3).write.format("noop").mode("overwrite").save()
print("ready", flush=True)

if how == "raise":
    raise ValueError("nobody handles this")
if how == "finally":
    try:
        raise ValueError("nobody handles this")
    finally:
        spark.stop()
if how == "finally-exit-3":
    try:
        sys.exit(3)
    finally:
        spark.stop()
if how.startswith("atexit"):
    atexit.register(spark.stop)
    if how == "atexit-exit-3":
        sys.exit(3)
    if how == "atexit-exit-0":
        sys.exit(0)
    raise ValueError("nobody handles this")
if how == "own-hook":
    sys.excepthook = lambda kind, error, trace: print("unhandled:", error)
    raise ValueError("nobody handles this")
if how == "shown":
    try:
        raise ValueError("somebody shows this")
    except ValueError as error:
        sys.excepthook(type(error), error, None)
    spark.stop()
    sys.exit(0)
if how == "slowly":
    stop = SparkContext.stop

    def stop_slowly(self):
        self._jsc.sc().stop()
        time.sleep(4)
        stop(self)

    SparkContext.stop = stop_slowly
    try:
        raise ValueError("nobody handles this")
    finally:
        spark.stop()
if how == "handled":
    try:
        raise ValueError("somebody handles this")
    except ValueError:
        spark.stop()
if how == "shown-and-left":
    try:
        raise ValueError("somebody shows this")
    except ValueError as error:
        sys.excepthook(type(error), error, None)
    sys.exit(0)
if how == "stop-exit-3":
    spark.stop()
    sys.exit(3)
if how == "stop-os-exit-3":
    spark.stop()
    os._exit(3)
if how == "stop-raise":
    spark.stop()
    raise ValueError("nobody handles this")
if how == "stop-later-exit-3":
    folder = Path(spark.conf.get("spark.events.reporter.file.path") or "")
    spark.stop()
    while not any(
        "application 'ending' RUNNING -> FINISHED" in file.read_text() for file in folder.glob("*")
    ):
        time.sleep(0.05)
    sys.exit(3)
if how == "no-stop":
    sys.exit(0)
if how == "exit-3":
    sys.exit(3)
if how == "wait":
    time.sleep(120)
if how == "children":
    for ending in ("exit", "raise"):
        if (child := os.fork()) == 0:
            if ending == "exit":
                sys.exit(3)
            raise ValueError("nobody handles this, in a child")
        os.waitpid(child, 0)
    spark.range(3).write.format("noop").mode("overwrite").save()
if how == "two-sessions":
    spark.stop()
    spark = SparkSession.builder.master("local[1]").appName("ending-2").getOrCreate()
    if "--attach" in sys.argv:
        spark_events.attach(spark)
    spark.range(3).write.format("noop").mode("overwrite").save()
    spark.stop()
    sys.exit(3)
if how == "kill-jvm":
    events = Path(spark.conf.get("spark.events.reporter.file.path") or "")
    while not any('"FINISHED"' in file.read_text() for file in events.glob("*")):
        time.sleep(0.05)  # what is still inside of a killed JVM, nobody can save
    os.kill(int(spark._jvm.java.lang.ProcessHandle.current().pid()), signal.SIGKILL)
    time.sleep(1)
    sys.exit(0)
spark.stop()
