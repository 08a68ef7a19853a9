"""Options that the listener hands on to openlineage-python's client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from spark_events_openlineage.factory import OpenLineageListenerFactory, transport_config

from spark_events.api import ConfigError, ReporterConfig, RetryLater
from spark_events.configuration.check import check
from tests.support.event_log_sample import small_log
from tests.support.forked_commands import run_forked
from tests.support.openlineage_schema import problems_of
from tests.support.waiting import free_port

JAAS = 'org.apache.kafka.PlainLoginModule required username="spark" password="s3cr3t-1";'
PREFIX = "spark.job-status-changed.listener.kafka."
KAFKA = {"transport.type": "kafka", "transport.topic": "lineage"}


@pytest.mark.parametrize(
    "values",
    [
        {"transport.config": f"bootstrap.servers:h:9092,sasl.jaas.config:{JAAS},s3cr3t-2"},
        {"transport.config": "sasl.password:file:/nowhere/s3cr3t-1"},
        {"transport.properties": "apiKey=s3cr3t-1;s3cr3t-2"},
    ],
)
def test_a_malformed_password_is_not_shown(values: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"'\*{6}' is not valid; expected a map") as caught:
        transport_config(ReporterConfig(PREFIX, {**KAFKA, **values}))

    assert "s3cr3t" not in str(caught.value)


def test_a_probe_says_which_catalog_is_away() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    config = ReporterConfig(PREFIX, {"transport.type": "http", "transport.url": url})
    with pytest.raises(RetryLater, match=f"^{url} cannot be reached: Connection refused; see transport.url$"):
        OpenLineageListenerFactory().probe(config)


def test_passwords_of_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    """They come from the environment, if wanted, and the producer has them as they are."""
    monkeypatch.setenv("JAAS", JAAS)
    values = {**KAFKA, "transport.config": "bootstrap.servers:h:9092,sasl.jaas.config:env:JAAS"}
    transport = transport_config(ReporterConfig(PREFIX, values))

    assert transport is not None
    assert transport["config"] == {"bootstrap.servers": "h:9092", "sasl.jaas.config": JAAS}


@pytest.mark.parametrize(("password", "warned"), [(JAAS, 1), ("env:JAAS", 0)])
def test_only_passwords_are_secret(monkeypatch: pytest.MonkeyPatch, password: str, warned: int) -> None:
    """A plain one is warned about; the names of servers, and JAAS's own words, stay readable."""
    monkeypatch.setenv("JAAS", JAAS)
    conf = {
        PREFIX + "factory.class": "openlineage",
        PREFIX + "transport.type": "console",
        PREFIX + "transport.config": f"bootstrap.servers:server-1:9092,sasl.jaas.config:{password}",
        "spark.events.reporter.f.factory.class": "server-1 required s3cr3t-1",
    }
    result = check(conf, False)

    assert sum("plain text" in text for text in result.warnings) == warned
    assert "'server-1 required ******'" in result.problems[0]


TASK, DAG = "0197d6ab-0000-7000-8000-000000000001", "0197d6ab-0000-7000-8000-000000000002"
OF_AIRFLOW = {
    "spark.openlineage.parentJobNamespace": "prod",
    "spark.openlineage.parentJobName": "nightly.load",
    "spark.openlineage.parentRunId": TASK,
    "spark.openlineage.rootParentJobNamespace": "prod",
    "spark.openlineage.rootParentJobName": "nightly",
    "spark.openlineage.rootParentRunId": DAG,
}
OWN = "spark.job-status-changed.listener.catalogue."


def replayed(folder: Path, conf: dict[str, str]) -> tuple[list[dict[str, Any]], str]:
    """Replay an event log with a listener that writes a file; return what it wrote, and what was said."""
    log, file = folder / "app-1", folder / "lineage.jsonl"
    log.write_bytes(small_log())
    own = {"factory.class": "openlineage", "transport.type": "file", "transport.path": str(file)}
    conf = {**{OWN + key: value for key, value in own.items()}, **conf}
    words = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    done = run_forked("replay", str(log), *words, timeout=280)
    lines = file.read_text().splitlines() if file.exists() else []
    return [json.loads(line) for line in lines], done.stderr


@pytest.mark.parametrize("named", ["by Airflow", "by the option", "by the environment"])
def test_the_run_that_an_application_belongs_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """The listener's own option goes before what Airflow's SparkSubmitOperator sets, and that before variables."""
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", f"prod/variable/{TASK}")
    conf = {} if named == "by the environment" else OF_AIRFLOW
    if named == "by the option":
        conf = {**conf, f"{OWN}parent": f"prod/option/{TASK}"}
    events, _ = replayed(tmp_path, conf)
    facet = events[0]["run"]["facets"]["parent"]

    names = {"by Airflow": "nightly.load", "by the option": "option", "by the environment": "variable"}
    assert (facet["job"]["name"], facet["run"]["runId"]) == (names[named], TASK)
    root = facet["root"]["job"]["name"], facet["root"]["run"]["runId"]
    assert root == (("variable", TASK) if named == "by the environment" else ("nightly", DAG))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("parentRunId", "manual__2026", "'manual__2026' is not valid; expected the UUID of a run"),
        (
            "parentJobName",
            "",
            "missing; spark.openlineage.parentRunId names a run only together with its job",
        ),
    ],
)
def test_properties_that_name_no_run(tmp_path: Path, key: str, value: str, said: str) -> None:
    _, stderr = replayed(tmp_path, {**OF_AIRFLOW, f"spark.openlineage.{key}": value})
    assert f"spark.openlineage.{key}: {said}" in " ".join(stderr.split())


def test_owners_tags_and_dependencies(tmp_path: Path) -> None:
    """Of each job; only the application, which is not part of another run of its own, has to wait."""
    conf = {
        f"{OWN}owners": "team:payments,user:jdoe",
        f"{OWN}tags": "tier:gold,domain:sales",
        f"{OWN}upstream-runs": f"prod/nightly.extract/{TASK},prod/nightly/check",
    }
    events, _ = replayed(tmp_path, conf)

    assert [problem for event in events for problem in problems_of(event)] == []
    jobs = [event["job"]["facets"] for event in events]
    owners = [[owner["name"] for owner in job["ownership"]["owners"]] for job in jobs]
    assert owners == [["team:payments", "user:jdoe"]] * len(events)
    tags = [{tag["key"]: tag["value"] for tag in job["tags"]["tags"]} for job in jobs]
    assert tags == [{"tier": "gold", "domain": "sales"}] * len(events)
    waiting = [event for event in events if "jobDependencies" in event["run"]["facets"]]
    assert {event["job"]["facets"]["jobType"]["jobType"] for event in waiting} == {"APPLICATION"}
    assert [
        (each["job"]["name"], each.get("run", {}).get("runId"))
        for each in waiting[0]["run"]["facets"]["jobDependencies"]["upstream"]
    ] == [("nightly.extract", TASK), ("nightly/check", None)]


def test_a_dependency_that_is_none(tmp_path: Path) -> None:
    _, stderr = replayed(tmp_path, {f"{OWN}upstream-runs": "nightly"})
    assert f"{OWN}upstream-runs: 'nightly' is not valid; expected <namespace>/<job name>" in " ".join(
        stderr.split()
    )
