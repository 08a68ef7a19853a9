"""Reports in ways that Spark has had since version 4: of a Python data source, and of a stateful processor.

The classes are made in functions, so that Spark sends them whole: workers cannot import this module.
"""

from pyspark.sql import Row
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.streaming import StatefulProcessor

from spark_events import task

PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def read_python_data_source(spark, rows, parts):
    class Reader(DataSourceReader):
        def partitions(self):
            return [InputPartition(part) for part in range(parts)]

        def read(self, partition):
            for number in range(rows // parts):
                task.metrics.counter("rows", way="data_source").inc()
                yield (number,)

    class Numbers(DataSource):
        @classmethod
        def name(cls):
            return "numbers"

        def schema(self):
            return "number int"

        def reader(self, schema):
            return Reader()

    spark.dataSource.register(Numbers)
    spark.read.format("numbers").load().write.format("noop").mode("overwrite").save()


def run_stateful_processor(spark, folder):
    class Processor(StatefulProcessor):
        def init(self, handle):
            self.state = handle.getValueState("n", "n int")

        def handleInputRows(self, key, rows, timer):  # noqa: N802 - PySpark's name
            for _ in rows:
                task.metrics.counter("rows", way="processor").inc()
            self.state.update((1,))
            yield Row(n=1)

        def close(self):
            pass

    (folder / "keys").mkdir()
    (folder / "keys" / "rows.txt").write_text("1\n2\n3\n")
    session = spark.newSession()
    session.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDER)
    session.conf.set("spark.sql.shuffle.partitions", "1")
    keys = session.readStream.text(str(folder / "keys")).groupBy("value")
    counted = keys.transformWithState(Processor(), "n int", "append", "none")
    writer = counted.writeStream.format("noop").queryName("processor").trigger(availableNow=True)
    writer.start().awaitTermination()
