"""Makes a table of a stream of many files; ``kill`` ends the driver in the middle.

ctas_stream.py <folder> kill|end
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQueryListener

from spark_events import ctas

FILES = 12
folder, what = Path(sys.argv[1]), sys.argv[2]
batches: list[int] = []


class Watch(StreamingQueryListener):
    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        batches.append(event.progress.batchId)
        if what == "kill" and len(batches) == 2:
            leave_a_file_of_an_attempt_that_failed()
            os.killpg(0, signal.SIGKILL)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        pass


def leave_a_file_of_an_attempt_that_failed() -> None:
    written = next((folder / "warehouse").glob("t-*/part-*.parquet"))
    shutil.copy(written, written.with_name("part-of-a-failed-attempt.parquet"))


spark = SparkSession.builder.getOrCreate()
if what == "kill":
    for number in range(FILES):
        spark.range(10 * number, 10 * number + 10, numPartitions=1).write.mode("append").parquet(
            f"{folder}/in"
        )
spark.streams.addListener(Watch())
data = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(f"{folder}/in")
ctas.create_table_as(data, "t", format="parquet", trigger={"availableNow": True})
table = spark.table("t")
print(
    f"{table.count()} rows, {table.distinct().count()} different, from batch {'0' if 0 in batches else 'n'} on"
)
