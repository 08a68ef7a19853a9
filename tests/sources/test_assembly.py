"""The start-up that the sources share."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_events.api import ApplicationInfo, ConfigError
from spark_events.runtime.plugins import EVENTS
from spark_events.sources.assembly import StartUp, assemble, for_event_logs, read_checked
from tests.support.plugins import Collecting

APPLICATION = ApplicationInfo("shop", "app-1")
CONF = {
    "spark.events.reporter.x.factory.class": "tests.support.plugins:CollectingFactory",
    "spark.metrics.reporter.m.factory.class": "tests.support.plugins:CollectingMetricsFactory",
    "spark.events.state.dir": "/state",
}


def test_a_wrong_configuration() -> None:
    """All problems in one error, or none where the caller wants to go on."""
    wrong = {
        **CONF,
        "spark.events.checkpoint.sla": "soon",
        "spark.events.reporter.y.factory.class": "nothing",
    }
    with pytest.raises(ConfigError) as raised:
        read_checked(wrong)
    assert len(raised.value.problems) == 2
    assert len(read_checked(wrong, strict=False).problems) == 2


def test_applications_of_event_logs() -> None:
    """They have neither metric reporters of their own nor a state across drivers."""
    configuration = read_checked(CONF, APPLICATION)
    adapted = for_event_logs(configuration)
    assert (len(configuration.setups), configuration.settings.state_dir) == (2, Path("/state"))
    assert ([setup.kind for setup in adapted.setups], adapted.settings.state_dir) == ([EVENTS], None)


def test_a_reporter_that_does_not_open() -> None:
    """Those that did open are closed again; without a wait, they go on."""
    key = "spark.events.reporter.y."
    conf = {**CONF, key + "factory.class": "tests.support.plugins:Raising", key + "in": "open"}
    configuration = for_event_logs(read_checked(conf, APPLICATION))
    with pytest.raises(ConfigError, match="no open today"):
        assemble(conf, APPLICATION, configuration, StartUp(open_within_ms=5_000, close_within_ms=5_000))
    opened = [reporter for reporter in Collecting.instances if "open" in reporter.calls]
    assert opened[-1].calls[-1] == "close"

    assembly = assemble(conf, APPLICATION, configuration, StartUp())
    assembly.registry.close(5_000)
    assembly.listeners.close()
    assert len(assembly.registry.workers) == 2
