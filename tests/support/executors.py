"""What metrics and events say of the executors of an application."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.applications import cli
from tests.support.file_log import Event, file_events, of_name, statuses
from tests.support.waiting import free_port

REMOVED = "spark_application_executors_removed_total"
_OF_MEMORY = (".last", ".highest")


def observed(folder: Path) -> tuple[dict[str, str], str]:
    """Return what an application is reported with, and the address of its metrics.

    Its events come to ``live`` below the folder, its event log to ``logs``, its executors' memory each second.
    """
    port = free_port()
    (folder / "logs").mkdir()
    conf = {
        "spark.metrics.reporter.prom.factory.class": "prometheus",
        "spark.metrics.reporter.prom.port": str(port),
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": str(folder / "live"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "logs").as_uri(),
        "spark.executor.memory": "512m",
        "spark.executor.heartbeatInterval": "1s",
    }
    return conf, f"http://127.0.0.1:{port}/metrics"


def value(metrics: str, name: str) -> float:
    """Return the sum of all series of a name, whose labels may begin there; -1 where there are none."""
    numbers = re.findall(rf"^{name}[^ ]* (\S+)$", metrics, re.MULTILINE)
    return sum(map(float, numbers)) if numbers else -1


def removed(metrics: str) -> dict[str, float]:
    """Return how many executors were removed, by reason, as far as there were any."""
    counts = re.findall(rf'^{REMOVED}{{[^}}]*reason="(\w+)"[^}}]*}} (\S+)$', metrics, re.MULTILINE)
    return {reason: float(count) for reason, count in counts if float(count)}


def lost_before_the_end(events: list[Event]) -> list[Event]:
    """Return the ExecutorLostEvents of executors that did not live as long as their application."""
    lost = of_name(events, "ExecutorLostEvent")
    return [event for event in lost if event["attributes"]["reason"] != "application_ended"]


def losses(events: list[Event]) -> dict[str, dict[str, Any]]:
    """Return the attributes of the ExecutorLostEvent of each executor that went before the application, by its id."""
    lost = lost_before_the_end(events)
    assert len(lost) == len({event["attributes"]["executor_id"] for event in lost})
    return {event["attributes"]["executor_id"]: event["attributes"] for event in lost}


def losses_without_memory(events: list[Event]) -> dict[str, dict[str, Any]]:
    """Return each ExecutorLostEvent by its id, without what it says of memory, of which a log knows less."""
    return {
        event["eventId"]: {
            "time": event["timeUnixNano"],
            "severity": event["severityText"],
            **{name: value for name, value in event["attributes"].items() if not name.endswith(_OF_MEMORY)},
        }
        for event in of_name(events, "ExecutorLostEvent")
    }


def replay(logs: Path, into: Path, conf: Mapping[str, str] | None = None) -> list[Event]:
    """Return the events that a replay of event logs gives; ``into`` is a folder for them."""
    reporter = "spark.events.reporter.file"
    conf = {f"{reporter}.factory.class": "file_log", f"{reporter}.path": str(into), **(conf or {})}
    options = [option for key, value in conf.items() for option in ("--conf", f"{key}={value}")]
    subprocess.run(cli("replay", str(logs), *options), check=True, capture_output=True)
    return file_events(into)


def above_the_limit_of_memory(events: list[Event]) -> Event:
    """Check that Kubernetes ended the only executor above its limit of 712 MiB, and return the job's failure."""
    assert statuses(events, "application") == ["CREATED", "RUNNING", "FINISHED"]
    lost = losses(events)["1"]
    assert (lost["reason"], lost["exitCode"]) == ("out_of_memory", 137)
    assert lost["memoryLimit.container"] == 712 << 20
    assert lost["exitMeaning"] == "killed (SIGKILL): above the memory limit of its container"
    (failure,) = of_name(events, "JobFailureEvent", job_kind="job")
    assert "OOMKilled" in failure["attributes"]["exception.message"]
    return failure
