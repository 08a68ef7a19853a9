"""A store in S3, which several processes add to at the same time: none loses what another has added."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from tests.support.history_story import DAY, HOUR, MIN, Story, write
from tests.support.lakehouse import CONNECTORS
from tests.support.s3_server import running_s3
from tests.support.servers import jars
from tests.support.spark import INTERPRETED, local_spark

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.spark,
    CONNECTORS,
]
ADDERS = 4


@pytest.fixture(scope="module")
def sessions(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Any]]:
    """A session for each that adds."""
    with running_s3("history") as endpoint:
        conf = {
            "spark.jars": ",".join(map(str, jars("s3a"))),
            "spark.hadoop.fs.s3a.endpoint": endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
            **INTERPRETED,
        }
        with local_spark("object store", tmp_path_factory.mktemp("warehouse"), conf) as session:
            yield [session.newSession() for _ in range(ADDERS)]


def together(number: int, act: Any) -> list[Any]:
    """Return what some acts give that begin at the same moment."""
    begin = Barrier(number)

    def acting(which: int) -> Any:
        begin.wait(60)
        return act(which)

    with ThreadPoolExecutor(number) as threads:
        return list(threads.map(acting, range(number)))


def test_one_of_several_creates_a_file(sessions: list[Any]) -> None:
    """And its content is that of the one who did."""
    from spark_events.history.reading.hadoop_files import HadoopFiles

    folder = "s3a://history/files"
    files = [HadoopFiles(session, folder) for session in sessions]
    for turn in range(5):
        name = f"store-{turn:08}.json"
        created = together(
            ADDERS, lambda which, name=name: files[which].create(name, f'{{"of":{which}}}'.encode())
        )
        assert created.count(True) == 1, (turn, created)
        assert files[0].read(name) == f'{{"of":{created.index(True)}}}'.encode()
    assert len(files[0].names()) == 5


def test_several_add(sessions: list[Any], tmp_path: Path) -> None:
    """Each a day of its own; in the end, the store has all days, each once."""
    from spark_events.history.reading.on_spark import Spark
    from spark_events.history.store.store import HistoryStore

    folder = "s3a://history/store"

    def add(which: int) -> None:
        story = Story().query(which * DAY, "RUNNING").checkpoint(which * DAY + HOUR, MIN)
        database = Spark(sessions[which])
        try:
            HistoryStore(database, folder).add([str(write(tmp_path / str(which), story))])
        finally:
            database.close()

    together(ADDERS, add)
    database = Spark(sessions[0])
    try:
        store = HistoryStore(database, folder)
        assert len(store.days) == ADDERS
        (row,) = store.history().tables().checkpoint_sla
        assert row["completed"] == ADDERS
    finally:
        database.close()
