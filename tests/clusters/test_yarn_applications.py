"""Batch applications on YARN under ``spark-events run``: in both deploy modes, from an archive, failing, killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.applications import App, AppRun, cli
from tests.support.endings import ended
from tests.support.executors import replay
from tests.support.file_log import Event, events_and_spans, file_events, of_name, statuses
from tests.support.paths import APPS, REPO
from tests.support.waiting import wait_until
from tests.support.yarn_cluster import YarnCluster

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(600)]
CLUSTER = ("--deploy-mode", "cluster")
SQUARES = str(APPS / "squares.py")


def submitted(yarn: YarnCluster, folder: Path, *words: str) -> App:
    conf = {
        **yarn.conf(),
        **events_and_spans(folder / "events"),
        "spark.executor.instances": "1",
        "spark.yarn.maxAppAttempts": "1",
    }
    return App(cli("run", *words), conf, folder, more={"HADOOP_CONF_DIR": str(yarn.conf_dir)})


def ran(yarn: YarnCluster, folder: Path, *words: str) -> tuple[AppRun, list[Event]]:
    run = submitted(yarn, folder, *words).end()
    return run, file_events(folder / "events")


@pytest.mark.parametrize("mode", [(), CLUSTER], ids=["client mode", "cluster mode"])
def test_one_that_succeeds(yarn: YarnCluster, tmp_path: Path, mode: tuple[str, ...]) -> None:
    run, events = ran(yarn, tmp_path, *mode, SQUARES)
    assert run.code == 0, run.err[-3000:]
    assert statuses(events, "application") == ["CREATED", "RUNNING", "FINISHED"]
    assert statuses(events, "job") == ["RUNNING", "FINISHED"]
    assert {event["attributes"].get("app_attempt_id") for event in events} == {"1" if mode else None}


@pytest.mark.parametrize("mode", [(), CLUSTER], ids=["client mode", "cluster mode"])
def test_one_that_fails(yarn: YarnCluster, tmp_path: Path, mode: tuple[str, ...]) -> None:
    """With its exception, the place in its code, and no attempt left; spark-submit says 1."""
    run, events = ran(yarn, tmp_path, *mode, SQUARES, "fail")
    assert run.code == 1
    assert statuses(events, "application") == ["CREATED", "RUNNING", "FAILED"]
    (failure,) = of_name(events, "JobFailureEvent", job_kind="application")
    attributes = failure["attributes"]
    assert failure["body"] == "application 'squares' failed: ValueError: 140 is not enough"
    assert attributes["code.line.number"] == 10
    assert attributes["canRestart"] == "false"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with spark-events in it, packed as docs/deploy/yarn.md says."""
    folder = tmp_path_factory.mktemp("environment")
    venv, packed = folder / "venv", folder / "environment.tar.gz"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", str(REPO)]
    subprocess.run(pip, check=True, env=environment, timeout=400)
    subprocess.run([str(venv / "bin" / "spark-events"), "pack", str(packed)], check=True, env=environment)
    shutil.rmtree(venv)
    return packed


def test_an_archive(yarn: YarnCluster, tmp_path: Path, archive: Path) -> None:
    """The Python of the driver and of the executors is in it, with what spark-events needs."""
    python = "spark.yarn.appMasterEnv.PYSPARK_PYTHON=./env/bin/python"
    run, events = ran(yarn, tmp_path, *CLUSTER, "--archives", f"{archive}#env", "--conf", python, SQUARES)
    assert run.code == 0, run.err[-3000:]
    assert statuses(events, "application") == ["CREATED", "RUNNING", "FINISHED"]


def test_one_whose_python_is_killed(yarn: YarnCluster, tmp_path: Path) -> None:
    """YARN's driver says with which exit code Python ended: neither live nor in its event log is it a guess."""
    (logs := tmp_path / "logs").mkdir()
    conf = {
        "spark.yarn.appMasterEnv.SPARK_EVENTS_TESTS_MASTER": "the cluster's",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": logs.as_uri(),
    }
    (tmp_path / "go").touch()
    words = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    run, live = ran(yarn, tmp_path, *CLUSTER, *words, str(APPS / "ends.py"), "kill:9", str(tmp_path))
    assert run.code == 1, run.err[-3000:]
    for events in (live, replay(logs, tmp_path / "replayed")):
        assert statuses(events, "application") == ["CREATED", "RUNNING", "FAILED"]
        last = of_name(events, "JobStatusChangeEvent", job_kind="application")[-1]["attributes"]
        assert (last["exitCode"], last["exitSignal"]) == (137, "SIGKILL")
        assert "outcome" not in last


def test_one_that_yarn_kills(yarn: YarnCluster, tmp_path: Path) -> None:
    """As ``yarn application -kill`` does: SIGTERM ends the driver, which says so before SIGKILL comes."""
    go = tmp_path / "go"
    app = submitted(
        yarn, tmp_path, *CLUSTER, str(APPS / "watched_orders.py"), str(tmp_path / "state"), str(go)
    )
    events = tmp_path / "events"
    app.wait_for(lambda: of_name(file_events(events), "CheckpointEvent"), "its query runs")
    yarn.kill_application(file_events(events)[0]["attributes"]["app_id"])
    assert app.end().code == 1
    # spark-submit ends before the containers do.
    wait_until(lambda: len(statuses(file_events(events), "application")) > 2, "the end is told")
    assert statuses(file_events(events), "application") == ["CREATED", "RUNNING", "FAILED"]
    (failure,) = of_name(file_events(events), "JobFailureEvent", job_kind="application")
    assert failure["attributes"]["exitSignal"] == "SIGTERM"


def test_one_that_its_master_gives_up(yarn: YarnCluster, tmp_path: Path) -> None:
    """Too many of its executors fail: the driver's Python and the event log have the reason and the exit code."""
    (logs := tmp_path / "logs").mkdir()
    most = ("spark.executor.maxNumFailures=1", "spark.yarn.max.executor.failures=1")
    log = ("spark.eventLog.enabled=true", f"spark.eventLog.dir={logs.as_uri()}")
    conf = [word for setting in (*most, *log) for word in ("--conf", setting)]
    query = [str(APPS / "watched_orders.py"), str(tmp_path / "state"), str(tmp_path / "go")]
    app = submitted(yarn, tmp_path, *CLUSTER, *conf, *query)
    events = tmp_path / "events"
    app.wait_for(lambda: of_name(file_events(events), "CheckpointEvent"), "its query runs")
    application = file_events(events)[0]["attributes"]["app_id"]

    def is_given_up() -> bool:
        for executor in yarn.executors(application).values():
            with suppress(ProcessLookupError):
                os.kill(executor, signal.SIGKILL)
        return ended(file_events(events))

    app.wait_for(is_given_up, "its end is told")
    assert app.end().code == 1
    wait_until(lambda: not list(logs.rglob("*.inprogress")), "the log has its end")
    for told in (file_events(events), replay(logs, tmp_path / "replayed")):
        assert statuses(told, "application")[-1] == statuses(told, "query")[-1] == "FAILED"
        (failure,) = of_name(told, "JobFailureEvent", job_kind="application")
        assert failure["attributes"]["exitCode"] == 11
        assert "Max number of executor failures (1) reached" in failure["attributes"]["exception.message"]
