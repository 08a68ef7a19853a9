"""What an application logs at its start of keys and values that cannot be used."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from spark_events.api import ApplicationInfo
from spark_events.sources.attaching import attachment
from spark_events.sources.attaching.attach_targets import AttachTarget, Source
from spark_events.sources.attaching.unknown_keys import unknown_keys_of_ours

SLAA = "spark.events.checkpoint.slaa: unknown key; did you mean 'spark.events.checkpoint.sla'?"


def start(conf: dict[str, str]) -> attachment.Attachment:
    """Attach without Spark, and so without reporters."""

    def never(*_: object) -> Source:
        raise AssertionError

    target = AttachTarget("app-1", lambda: conf, lambda _: ApplicationInfo(), lambda: "4", False, never)
    return attachment._start(target, conf, strict=False)


def test_it_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    start(
        {"spark.events.checkpoint.slaa": "60s", "spark.events.checkpoint.sla": "60s", "spark.app.name": "x"}
    )
    said = [record for record in caplog.records if "slaa" in record.getMessage()]

    assert [(record.levelno, record.getMessage()) for record in said] == [(logging.WARNING, SLAA)]


@pytest.mark.parametrize(
    "key",
    [
        "spark.events.checkpoint.sla",
        "spark.events.checkpoint.query-sla.orders",
        "spark.events.reporters",
        "spark.events.reporter.file.path",
        "spark.events.ctas.lock.timeout",
        "spark.metrics.conf.driver.sink.jmx.class",
        "spark.metrics.scope.query",
        "spark.eventLog.enabled",
        "spark.event.of.somebody.else",
    ],
)
def test_what_is_known_or_not_ours_alone(key: str) -> None:
    assert unknown_keys_of_ours({key: "1"}) == []


def test_it_loads_nothing_of_what_an_application_does_without() -> None:
    program = (
        "import sys, spark_events.sources.attaching.attachment as a\n"
        "a.unknown_keys_of_ours({'spark.events.checkpoint.sla': '60s', 'spark.app.name': 'x'})\n"
        "print([name for name in sys.modules if name.startswith('spark_events.ctas')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("key", "value", "instead"),
    [
        ("spark.events.heartbeat.interval", "30", "the default holds: 1min"),
        ("spark.events.checkpoint.sla", "soon", "the default holds: none"),
        ("spark.events.checkpoint.query-sla.orders", "soon", "it counts as absent"),
        (
            "spark.events.checkpoint.query-sla.",
            "5s",
            "expected spark.events.checkpoint.query-sla.<query name>; it counts as absent",
        ),
        (
            "spark.events.source.query-idle-timeout.",
            "5s",
            "expected spark.events.source.query-idle-timeout.<query name>; it counts as absent",
        ),
        ("spark.events.state.dir", "~/state", "the default holds: none"),
        ("spark.events.task.failures.port", "x", "the default holds: any free port"),
        ("spark.events.reporter.f.factory.class", "filelog", "this event reporter is left out"),
        ("spark.metrics.reporter.prom.port", "x", "this metric reporter is left out"),
        ("spark.events.failure.enrichers", "nobody", "this enricher is left out"),
    ],
)
def test_what_holds_instead(key: str, value: str, instead: str, caplog: pytest.LogCaptureFixture) -> None:
    start(
        {"spark.metrics.reporter.prom.factory.class": "prometheus", key: value}
        if "prom" in key
        else {key: value}
    )
    (said,) = (record for record in caplog.records if record.levelno == logging.ERROR)

    assert said.getMessage().startswith(f"{key}: ")
    assert said.getMessage().endswith(f"; {instead}")
