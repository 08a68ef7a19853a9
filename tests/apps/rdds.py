"""Jobs of plain RDDs, and DataFrames made of RDDs; the argument is a folder."""

import sys
from pathlib import Path

import pandas
from pyspark.sql import DataFrame, SparkSession

from spark_events.api import LineageDataset, LineageVertex, TableLineageEdge
from spark_events.lineage import add_lineage_edges

folder = Path(sys.argv[1])
spark = SparkSession.builder.appName("rdds").getOrCreate()
context = spark.sparkContext


def at(name: str) -> str:
    return str(folder / "data" / name)


for name in ("words", "more"):
    (folder / "data" / name).mkdir(parents=True)
    (folder / "data" / name / "some.txt").write_text("a b\nc\n")
spark.range(3).selectExpr("id", "id * 2 AS twice").write.partitionBy("id").saveAsTable("numbers")

words, more = context.textFile(at("words")), context.textFile(at("more"))
words.flatMap(str.split).map(lambda word: (word, 1)).reduceByKey(int.__add__).saveAsTextFile(at("counted"))
words.union(more).zipWithIndex().saveAsPickleFile(at("united"))
context.wholeTextFiles(at("words")).saveAsNewAPIHadoopFile(
    at("whole"),
    "org.apache.hadoop.mapreduce.lib.output.SequenceFileOutputFormat",
    "org.apache.hadoop.io.Text",
    "org.apache.hadoop.io.Text",
)
context.sequenceFile(at("whole")).values().saveAsTextFile(at("from_whole"))
spark.table("numbers").rdd.map(str).union(words).saveAsTextFile(at("of_table"))
context.parallelize([1, 2]).saveAsTextFile(at("of_nothing"))
words.count()
try:
    words.map(lambda line: 1 // 0).saveAsTextFile(at("failing"))
except Exception as error:
    print(type(error).__name__, flush=True)

# DataFrames made of RDDs.
numbers = spark.table("numbers")
numbers.rdd.union(numbers.rdd).map(lambda row: (row.id, row.twice + 1)).toDF(["a", "b"]).write.parquet(
    at("made")
)
spark.createDataFrame([(1,)], "a int").write.parquet(at("of_list"))
for arrow in ("true", "false"):
    spark.conf.set("spark.sql.execution.arrow.pyspark.enabled", arrow)
    spark.createDataFrame(pandas.DataFrame({"a": [1]})).write.parquet(at(f"of_pandas_{arrow}"))
spark.sql("SELECT * FROM VALUES (1) AS t (a)").write.parquet(at("of_values"))
if spark.version >= "4":  # PySpark 3.5's own code for it fails with this pandas
    numbers_of_pandas = numbers.pandas_api()
    numbers_of_pandas["more"] = numbers_of_pandas["twice"] + 1
    numbers_of_pandas.to_spark().write.parquet(at("by_pandas"))

# What only the program knows.
words.foreach(lambda line: None)
said = TableLineageEdge(
    LineageVertex((LineageDataset("told", "by-hand"),)), LineageVertex((LineageDataset("heard", "by-hand"),))
)
add_lineage_edges(spark, said)
words.foreachPartition(list)


def each_batch(batch: DataFrame, number: int) -> None:
    batch.rdd.map(str).saveAsTextFile(at(f"batch-{number}"))


stream = spark.readStream.text(at("words")).writeStream.foreachBatch(each_batch).queryName("batches")
stream.option("checkpointLocation", at("checkpoint")).trigger(availableNow=True).start().awaitTermination()
stream = spark.readStream.text(at("words")).writeStream.format("memory").queryName("kept")
stream.trigger(availableNow=True).start().awaitTermination()
spark.table("kept").write.parquet(at("of_memory"))
spark.stop()
