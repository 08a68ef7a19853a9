"""Attaches to one application after the other in one process: python leaks.py. Prints what is left after each."""

import gc
import json
import os
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession

import spark_events
from tests.support.java_source import compile_java

HISTOGRAM = """
import java.lang.management.ManagementFactory;
import javax.management.ObjectName;

public class Histogram {
    public String of() throws Exception {
        Object[] arguments = new Object[] {new String[0]};
        String[] types = new String[] {String[].class.getName()};
        ObjectName name = new ObjectName("com.sun.management:type=DiagnosticCommand");
        return (String) ManagementFactory.getPlatformMBeanServer().invoke(name, "gcClassHistogram", arguments, types);
    }
}
"""


def java_objects(jvm):
    """Return how many objects there are of each class of ours; the histogram collects garbage first."""
    histogram = compile_java(jvm, HISTOGRAM, "Histogram").getConstructors()[0].newInstance(None).of()
    ours = (line.split() for line in histogram.splitlines() if "io.sparkevents" in line)
    return {words[3]: int(words[1]) for words in ours}


def left(jvm):
    gc.collect()
    files = [
        os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.is_symlink() and path.exists()
    ]
    threads = jvm.java.lang.Thread.getAllStackTraces().keySet()
    return {
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "java threads": sorted(t.getName() for t in threads.toArray() if "spark-events" in t.getName()),
        "files": sorted(file for file in files if file.startswith("/") and not file.startswith("/dev/")),
        "sockets": sum(file.startswith("socket:") for file in files),
        "objects": java_objects(jvm),
    }


def grown(now, before):
    """Return whether there are more objects of any class; Spark's and py4j's cleaners let go of some late."""
    limit = {**dict.fromkeys(now, 0), **before}
    return any(count > limit[name] for name, count in now.items())


middle = None
for number in range(11):
    spark = SparkSession.builder.master("local[1]").appName(f"leaks-{number}").getOrCreate()
    attachment = spark_events.attach(spark, strict=True)
    spark.range(1).collect()
    jvm = spark._jvm
    spark.stop()
    attachment.wait_closed()
    del attachment, spark
    now = left(jvm)
    if number == 5:
        middle = now["objects"]
    deadline = time.monotonic() + 60
    while number == 10 and grown(now["objects"], middle) and time.monotonic() < deadline:
        time.sleep(0.2)
        now = left(jvm)
    print(json.dumps(now), flush=True)
