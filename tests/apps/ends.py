"""A streaming query and a job, in a process that ends in the way that its first argument names."""

import os
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession

how, folder = sys.argv[1], Path(sys.argv[2])
builder = SparkSession.builder.appName("ends")
if not os.environ.get("SPARK_EVENTS_TESTS_MASTER"):
    builder = builder.master("local[2]")
spark = builder.getOrCreate()
if "--attach" in sys.argv:
    import spark_events

    spark_events.attach(spark)
jvm = spark._jvm
jvm_pid = int(jvm.java.lang.ProcessHandle.current().pid())
rates = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
query = (
    rates.writeStream.queryName("orders")
    .format("noop")
    .trigger(processingTime="500 milliseconds")
    .option("checkpointLocation", str(folder / "checkpoint"))
    .start()
)
while query.lastProgress is None or query.lastProgress["batchId"] < 1:
    time.sleep(0.05)


def slow_job():
    """Run a job that goes on until the application ends."""
    try:
        spark.sparkContext.parallelize(range(2), 1).map(lambda x: time.sleep(600)).count()
    except Exception as error:
        print("job:", type(error).__name__, flush=True)


threading.Thread(target=slow_job, daemon=True).start()
while not spark.sparkContext.statusTracker().getActiveJobsIds():
    time.sleep(0.05)
(folder / "pids").write_text(f"{os.getpid()} {jvm_pid}")
# The test acts once the beginning is reported.
while not (folder / "go").exists():
    time.sleep(0.05)

if how == "return":
    pass
elif how == "stop":
    query.stop()
    spark.stop()
elif how.startswith("stop-exit:"):
    query.stop()
    spark.stop()
    sys.exit(int(how.partition(":")[2]))
elif how == "raise":
    raise KeyError("customer")
elif how.startswith("sys.exit:"):
    sys.exit(int(how.partition(":")[2]))
elif how.startswith("os._exit:"):
    os._exit(int(how.partition(":")[2]))
elif how.startswith("kill:"):
    os.kill(os.getpid(), int(how.partition(":")[2]))
elif how == "finally":
    try:
        raise KeyError("customer")
    finally:
        spark.stop()
elif how == "wait":
    query.awaitTermination()
elif how == "sleep":
    time.sleep(600)
elif how.startswith("System.exit:"):
    jvm.System.exit(int(how.partition(":")[2]))
    time.sleep(600)
elif how == "heap":
    rows = spark.range(0, 400_000_000, 1, 1).selectExpr("collect_list(id) AS l").collect()
elif how == "metaspace":
    methods = " ".join(f"long m{n}() {{ return {n}L; }}" for n in range(200))
    kept = jvm.java.util.ArrayList()
    while True:
        name = f"C{kept.size()}"
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook(f"public class {name} {{ {methods} }}")
        kept.add(jvm.java.lang.Class.forName(name, True, compiler.getClassLoader()))
elif how == "crash":
    field = jvm.java.lang.Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe")
    field.setAccessible(True)
    field.get(None).putAddress(0, 0)
    time.sleep(600)
elif how == "spark-stops":
    spark._jsc.sc().stopInNewThread()
    query.awaitTermination()
    time.sleep(5)
