"""Options that the listener hands on to openlineage-python's client."""

from __future__ import annotations

import pytest
from spark_events_openlineage.factory import transport_config

from spark_events.api import ConfigError, ReporterConfig
from spark_events.configuration.check import check

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
    with pytest.raises(ConfigError, match=r"'\*{6}' is not allowed; expected a map") as caught:
        transport_config(ReporterConfig(PREFIX, {**KAFKA, **values}))

    assert "s3cr3t" not in str(caught.value)


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
