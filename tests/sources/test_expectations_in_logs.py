"""What an application expects of its queries is in its event log, and counts where nobody says otherwise."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests.support import spark_records as r
from tests.support.event_log_reading import read

SLA = "spark.events.checkpoint.sla"


@pytest.mark.parametrize(
    ("own", "conf", "sla_ms"),
    [
        ({SLA: "10s"}, {}, 10_000),
        ({SLA: "10s", "spark.events.checkpoint.query-sla.orders": "5s"}, {}, 5_000),
        ({SLA: "10s"}, {SLA: "3s"}, 3_000),
        ({SLA: "soon"}, {}, None),
        ({}, {}, None),
    ],
    ids=["its own", "its own of a query", "that of the replay", "none that can be read", "none"],
)
def test_its_sla(own: dict[str, str], conf: dict[str, str], sla_ms: int | None, tmp_path: Path) -> None:
    reporters = {"spark.events.reporter.own.factory.class": "file_log", "spark.events.enabled": "false"}
    environment = {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": {**reporters, **own}}
    records = [
        environment,
        r.application_start(),
        r.query_started(0),
        r.progress(100, 0),
        r.application_end(500),
    ]
    log = tmp_path / "app-1"
    log.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in records))
    (checkpoint,) = (event for event in read(log, conf).events if event.name == "CheckpointEvent")
    assert checkpoint.attributes.get("slaMs") == sla_ms
