"""What YARN gives an application and takes from it again: memory, containers of others, executors for a while."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_events.sources.event_log.follow import Follower
from spark_events.sources.event_log.reading.log_positions import LogPositions
from spark_events.spark.file_systems import open_file_system
from tests.support.applications import App, cli
from tests.support.executors import losses
from tests.support.file_log import Event, events_and_spans, file_events, of_name, statuses
from tests.support.paths import APPS
from tests.support.plugins import Collecting
from tests.support.waiting import wait_until
from tests.support.yarn_cluster import CONTAINER_MB, URGENT, YarnCluster

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(600)]
CLUSTER = ("--deploy-mode", "cluster")


class Application:
    """One in cluster mode, whose files are in a folder of its own."""

    def __init__(self, yarn: YarnCluster, folder: Path, words: list[str], conf: dict[str, str]) -> None:
        folder.mkdir(exist_ok=True)
        self._events = folder / "events"
        conf = {**yarn.conf(), **events_and_spans(self._events), "spark.yarn.maxAppAttempts": "1", **conf}
        more = {"HADOOP_CONF_DIR": str(yarn.conf_dir)}
        self.app = App(cli("run", *CLUSTER, *words), conf, folder, more=more)

    @property
    def events(self) -> list[Event]:
        return file_events(self._events)

    @property
    def id(self) -> str:
        return str(self.events[0]["attributes"]["app_id"])

    def wait_for(self, condition: Callable[[], Any], what: str) -> None:
        self.app.wait_for(condition, what)

    def end(self) -> None:
        run = self.app.end()
        assert run.code == 0, run.err[-3000:]


def query(yarn: YarnCluster, folder: Path, **conf: str) -> tuple[Application, Path]:
    """Start a streaming query, and return it with the file that ends it."""
    go = folder / "go"
    words = [str(APPS / "watched_orders.py"), str(folder / "state"), str(go)]
    given = {f"spark.{key.replace('_', '.')}": value for key, value in conf.items()}
    return Application(yarn, folder, words, given), go


def test_a_container_above_its_limit_of_memory(yarn: YarnCluster, tmp_path: Path) -> None:
    """YARN kills it and says so; Spark keeps its words, and leaves out its exit status, -104."""
    greedy = Application(
        yarn,
        tmp_path,
        [str(APPS / "over_limit.py")],
        {"spark.executor.instances": "1", "spark.task.maxFailures": "1"},
    )
    greedy.end()
    (first, *_) = losses(greedy.events).values()
    assert (first["reason"], first["memoryLimit.container"]) == ("out_of_memory", CONTAINER_MB << 20)
    assert first["reasonMessage"].startswith("Container killed by YARN for exceeding physical memory limits")
    (failure,) = of_name(greedy.events, "JobFailureEvent", job_kind="job")
    assert failure["attributes"]["executorLost.reason"] == "out_of_memory"


def test_containers_for_another_queue(yarn: YarnCluster, tmp_path: Path) -> None:
    """YARN preempts executors of an application that has more than its queue is promised; its query goes on."""
    first, go = query(yarn, tmp_path / "first", executor_instances="5")
    first.wait_for(lambda: len(yarn.executors(first.id)) == 5 if first.events else False, "it has all")
    second, go_second = query(yarn, tmp_path / "second", executor_instances="1", yarn_queue=URGENT)
    first.wait_for(lambda: losses(first.events), "one is taken from it")
    second.wait_for(lambda: of_name(second.events, "CheckpointEvent"), "the urgent query runs")
    for each in (go, go_second):
        each.touch()
    for application in (second, first):
        application.end()
    taken = [lost for lost in losses(first.events).values() if lost["reason"] != "application_ended"]
    assert {lost["reason"] for lost in taken} == {"preempted"}
    assert statuses(first.events, "query") == ["CREATED", "RUNNING", "CANCELED"]


def test_its_logs_are_kept_together(yarn: YarnCluster, tmp_path: Path) -> None:
    """What spark-events says of itself in a driver's container is among what ``yarn logs`` shows."""
    application = Application(yarn, tmp_path, [str(APPS / "squares.py")], {"spark.executor.instances": "1"})
    application.end()
    files, _ = open_file_system(f"webhdfs://{yarn.hdfs.web}", "HDFS")

    def kept() -> bytes:
        return b"".join(files.cat_file(path) for path in files.find("/logs") if application.id in path)

    wait_until(lambda: b"spark-events: INFO: reporting on" in kept(), "its logs are there", 120)


def test_event_logs_in_hdfs_are_followed(yarn: YarnCluster, tmp_path: Path) -> None:
    """While they grow: the same statuses as live."""
    files, _ = open_file_system(f"webhdfs://{yarn.hdfs.web}", "HDFS")
    files.makedirs("/history", exist_ok=True)
    logs = {"eventLog_enabled": "true", "eventLog_dir": f"{yarn.hdfs.url}/history"}
    application, go = query(yarn, tmp_path / "app", executor_instances="1", **logs)
    conf = {"spark.events.reporter.x.factory.class": "tests.support.plugins:CollectingFactory"}
    before = len(Collecting.instances)
    follower = Follower(f"webhdfs://{yarn.hdfs.web}/history", conf, LogPositions(tmp_path / "positions"))

    def followed(kind: str) -> list[str]:
        follower.poll()
        return [
            str(event.attributes["newJobStatus"])
            for reporter in Collecting.instances[before:]
            for event in reporter.events
            if event.name == "JobStatusChangeEvent" and event.attributes.get("job_kind") == kind
        ]

    application.wait_for(lambda: followed("query") == ["CREATED", "RUNNING"], "it is followed while it runs")
    go.touch()
    application.end()
    for kind in ("application", "query"):
        live = statuses(application.events, kind)
        wait_until(lambda kind=kind, live=live: followed(kind) == live, "its end is followed")
    follower.stop()
    follower.run()


def test_executors_for_a_while(yarn: YarnCluster, tmp_path: Path) -> None:
    """Dynamic allocation: those that are idle go, which is no loss to warn of."""
    conf = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.maxExecutors": "3",
        "spark.dynamicAllocation.executorIdleTimeout": "1s",
        "spark.executor.instances": "0",
    }
    application = Application(yarn, tmp_path, [str(APPS / "scaling.py"), str(tmp_path), "1"], conf)
    application.wait_for(lambda: application.events, "it runs")
    (tmp_path / "begin-0").touch()
    application.wait_for(lambda: len(yarn.executors(application.id)) == 3, "it has its executors")
    (tmp_path / "over-0").touch()
    application.wait_for(lambda: not yarn.executors(application.id), "they are gone")
    (tmp_path / "go").touch()
    application.end()
    assert {lost["reason"] for lost in losses(application.events).values()} == {"killed_by_driver"}
    told = of_name(application.events, "ExecutorLostEvent")
    assert {event["severityText"] for event in told} == {"INFO"}
    assert len(told) == 3
