"""Event logs in a real HDFS while Spark writes to them: listed with too small a size, and read all the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from spark_events.sources.event_log.reading.files import LogFiles, LogPart
from tests.support.servers import Hdfs, running_hdfs
from tests.support.spark import local_spark

pytestmark = [pytest.mark.spark, pytest.mark.thorough]
NAME = "/logs/application_1_0001.inprogress"
BLOCK = 1 << 20
LINE = b'{"Event":"SparkListenerLogStart"}\n'


@pytest.fixture(scope="module")
def hdfs(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    with running_hdfs(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture(scope="module")
def spark(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with local_spark("writer", tmp_path_factory.mktemp("warehouse")) as session:
        yield session


class Writer:
    """What writes as Spark does: each line is flushed to the data nodes, and the file stays open."""

    def __init__(self, spark: Any, hdfs: Hdfs) -> None:
        jvm = spark.sparkContext._jvm
        path = jvm.org.apache.hadoop.fs.Path(f"{hdfs.url}{NAME}")
        conf = spark.sparkContext._jsc.hadoopConfiguration()
        self._file = path.getFileSystem(conf).create(path, True, 4096, 1, BLOCK)

    def write(self, data: bytes) -> None:
        self._file.write(bytearray(data))
        self._file.hflush()

    def close(self) -> None:
        self._file.close()


def the_part(files: LogFiles) -> LogPart:
    ((part,),) = [log.parts for log in files.find()]
    return part


def test_a_log_that_is_written(spark: Any, hdfs: Hdfs) -> None:
    """In its first block, beyond it, and once it is closed; from any position."""
    files = LogFiles(f"webhdfs://{hdfs.web}/logs")
    writer = Writer(spark, hdfs)
    written = LINE
    writer.write(LINE)
    for more in (LINE, LINE * (BLOCK // len(LINE)), LINE):
        part = the_part(files)
        assert part.size == len(written)
        assert b"".join(files.blocks(part, 0)) == written
        assert b"".join(files.blocks(part, len(written) - 5)) == written[-5:]
        assert b"".join(files.blocks(part, len(written))) == b""
        writer.write(more)
        assert b"".join(files.blocks(part, len(written))) == more
        written += more
    writer.close()
    assert b"".join(files.blocks(the_part(files), 0)) == written
    assert files.find()[0].modified_ms == 0, "HDFS does not say when it was written to"
