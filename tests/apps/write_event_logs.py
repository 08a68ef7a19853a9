"""Lets Spark itself write one log with each codec, and a rolling one that its History Server compacts."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

source, out = Path(sys.argv[1]), Path(sys.argv[2])
rolling = (out / "rolling").as_uri()
(out / "rolling").mkdir(parents=True)
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.eventLog.enabled", "true")
    .config("spark.eventLog.dir", rolling)
    .config("spark.eventLog.rolling.enabled", "true")
    .config("spark.eventLog.rolling.maxFileSize", "10m")
    .config("spark.eventLog.compress", "false")
    .config("spark.ui.enabled", "false")
    .getOrCreate()
)
sc, jvm = spark.sparkContext, spark.sparkContext._jvm

# Each in several pieces with a flush between, as a live application writes it.
for codec in ("zstd", "lz4", "snappy", "lzf"):
    stream = jvm.org.apache.spark.io.CompressionCodec.createCodec(
        sc._jsc.sc().conf(), codec
    ).compressedContinuousOutputStream(jvm.java.io.FileOutputStream(str(out / f"app-1.{codec}")))
    for line in source.read_bytes().splitlines(keepends=True):
        stream.write(line)
        stream.flush()
    stream.close()

for _ in range(3):
    spark.range(0, 1500, 1, 1500).selectExpr("sum(id)").collect()
print("id:", sc.applicationId)
spark.stop()

# What the History Server does to a rolling log, on a copy, with its own code.
folder = next((out / "rolling").glob("eventlog_v2_*"))
compacted = out / "compacted" / folder.name
compacted.mkdir(parents=True)
for path in folder.iterdir():
    (compacted / path.name).write_bytes(path.read_bytes())
spark = SparkSession.builder.master("local[1]").getOrCreate()
jvm, conf = spark.sparkContext._jvm, spark.sparkContext._jsc.hadoopConfiguration()
path = jvm.org.apache.hadoop.fs.Path(compacted.as_uri())
files = path.getFileSystem(conf)
reader = jvm.org.apache.spark.deploy.history.EventLogFileReader.apply(files, path).get()
compactor = jvm.org.apache.spark.deploy.history.EventLogFileCompactor(
    spark.sparkContext._jsc.sc().conf(), conf, files, 1, 0.1
)
print("compacted:", compactor.compact(reader.listEventLogFiles()).code().toString())
spark.stop()
