"""Event logs in a real HDFS while Spark writes to them: listed with too small a size, and read all the same."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from spark_events.sources.event_log import follow, followed_application
from spark_events.sources.event_log.follow import Follower
from spark_events.sources.event_log.followed_application import steady_ms
from spark_events.sources.event_log.reading import open_hdfs_files
from spark_events.sources.event_log.reading.files import LogFiles, LogPart
from spark_events.sources.event_log.reading.log_positions import DEAD, LogPositions
from tests.support.event_log_sample import small_log
from tests.support.raw_http import serving
from tests.support.servers import Hdfs, running_hdfs
from tests.support.spark import local_spark
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.thorough]
NAME = "/logs/application_1_0001.inprogress"
BLOCK = 1 << 20
WITHOUT_END = b"".join(small_log().splitlines(keepends=True)[:-3])
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
        self._path = jvm.org.apache.hadoop.fs.Path(f"{hdfs.url}{NAME}")
        self._fs = self._path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        self._file = self._fs.create(self._path, True, 4096, 1, BLOCK)

    def write(self, data: bytes) -> None:
        self._file.write(bytearray(data))
        self._file.hflush()

    def close(self) -> None:
        self._file.close()

    def set_time(self, ms: int) -> None:
        """Let the file have been closed at this time."""
        self._fs.setTimes(self._path, ms, -1)


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
    assert files.find()[0].modified_ms == 0, "HDFS does not say when it was written to"
    writer.close()
    assert b"".join(files.blocks(the_part(files), 0)) == written
    writer.set_time(1_795_000_000_000)
    assert files.find()[0].modified_ms == 1_795_000_000_000


def test_a_data_node_that_does_not_answer(spark: Any, hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file stays as large as it was: a smaller one would count as another file, and be read again."""
    monkeypatch.setattr(open_hdfs_files, "_TIMEOUT_S", (5, 1), raising=False)
    files = LogFiles(f"webhdfs://{hdfs.web}/logs")
    writer = Writer(spark, hdfs)
    for _ in range(3):  # the name node hears of the first alone
        writer.write(LINE)
    found = files.find()
    data_node = hdfs._processes[1]
    data_node.send_signal(signal.SIGSTOP)
    try:
        assert files.find() == found
    finally:
        data_node.send_signal(signal.SIGCONT)
    writer.write(LINE)
    assert the_part(files).size == len(LINE) * 4
    writer.close()


class Asked:
    """How many requests are made about what is in a file."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.urls: list[str] = []
        get = open_hdfs_files.OpenHdfsFiles._get

        def ask(files: open_hdfs_files.OpenHdfsFiles, url: str, **options: Any) -> Any:
            self.urls.append(url)
            return get(files, url, **options)

        monkeypatch.setattr(open_hdfs_files.OpenHdfsFiles, "_get", ask)

    def by(self, act: Callable[[], Any]) -> int:
        before = len(self.urls)
        act()
        return len(self.urls) - before


def test_who_is_asked_about_what_is_not_followed(
    spark: Any, hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody once HDFS has closed it, or each poll would ask about each log of a driver that is gone."""
    asked = Asked(monkeypatch)
    files = LogFiles(f"webhdfs://{hdfs.web}/logs")
    writer = Writer(spark, hdfs)
    for written in (0, 1, 1):  # a log that is open may go on
        writer.write(LINE * written)
        assert asked.by(lambda: files.find(is_followed=lambda name: False)) == 3
    writer.close()
    assert asked.by(lambda: files.find(is_followed=lambda name: False)) == 1
    assert asked.by(lambda: files.find(is_followed=lambda name: False)) == 0
    assert the_part(files).size == len(LINE) * 2
    assert asked.by(files.find) == 1, "one that is followed may be opened again"


@pytest.fixture
def follower(spark: Any, hdfs: Hdfs, tmp_path: Path) -> Iterator[Follower]:
    conf = {
        "spark.events.reporter.x.factory.class": "tests.support.plugins:CollectingFactory",
        "spark.events.event-log.idle-timeout": "1h",
    }
    Writer(spark, hdfs).close()
    follower = Follower(f"webhdfs://{hdfs.web}/logs", conf, LogPositions(tmp_path / "state.sqlite"))
    yield follower
    follower._close()


def test_a_driver_that_is_gone_for_days(
    spark: Any, hdfs: Hdfs, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HDFS has closed its log: it is FAILED at once, and not a whole idle time after each start."""
    asked = Asked(monkeypatch)
    writer = Writer(spark, hdfs)
    writer.write(WITHOUT_END)
    writer.close()
    writer.set_time(1_795_000_000_000)
    wait_until(lambda: let_go(follower), "it is FAILED, and all of it is delivered")
    assert asked.by(follower.poll) == 0


def test_a_log_that_hdfs_closes(
    spark: Any, hdfs: Hdfs, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Since its driver is gone: nothing was written to it by that."""
    writer = Writer(spark, hdfs)
    writer.write(WITHOUT_END)
    follower.poll()
    for later_ms, close in ((3_000_000, writer.close), (4_000_000, lambda: None)):
        for module in (follow, followed_application):
            monkeypatch.setattr(module, "steady_ms", lambda later_ms=later_ms: steady_ms() + later_ms)
        close()
        follower.poll()
    wait_until(lambda: let_go(follower), "it is FAILED, and all of it is delivered")


def let_go(follower: Follower) -> bool:
    follower.poll()
    position = follower._positions["application_1_0001"]
    return position is not None and position.state == DEAD


class HttpFs(BaseHTTPRequestHandler):
    """HttpFS, which is in none of the jars here: it answers by itself, without a length, and takes its time."""

    protocol_version = "HTTP/1.1"
    content, listed, has_all_at_once = LINE * 40_000, len(LINE), True
    may_end = threading.Event()
    ended_early = False

    def do_GET(self) -> None:
        if "op=GET_BLOCK_LOCATIONS" in self.path:
            self.send_response(400)  # it does not know this operation
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if "op=OPEN" not in self.path:
            file = {"length": self.listed, "type": "FILE", "pathSuffix": NAME.rpartition("/")[2]}
            status = {"FileStatus": {"type": "DIRECTORY", "length": 0}}
            if "LISTSTATUS" in self.path:
                status = {"FileStatuses": {"FileStatus": [file]}}
            elif NAME in self.path:
                status = {"FileStatus": file}
            text = json.dumps(status).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
            return
        content = self.content[int(self.path.partition("offset=")[2].partition("&")[0]) :]
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        half = len(content) // 2
        self.wfile.write(b"%x\r\n%b\r\n" % (half, content[:half]))
        type(self).ended_early = not (self.has_all_at_once or self.may_end.wait(5))
        rest = content[half:]
        self.wfile.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(rest), rest))

    def log_message(self, *arguments: object) -> None:
        pass


def test_httpfs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It sends a log through itself: the log is read piece by piece, and not into memory."""
    with serving(HttpFs) as url:
        files = LogFiles(f"{url.replace('http', 'webhdfs', 1)}/logs")
        part = the_part(files)
        assert part.size == len(HttpFs.content)
        monkeypatch.setattr(HttpFs, "has_all_at_once", False)
        blocks = files.blocks(part, 0)
        read = next(blocks)
        HttpFs.may_end.set()
        assert read + b"".join(blocks) == HttpFs.content
        assert not HttpFs.ended_early, "all of it was read before the first block was given"
