"""Each record of Spark's that is named for the listeners reaches them from every source."""

from __future__ import annotations

import re

import pytest

from spark_events.listeners import spark_records
from spark_events.listeners.spark_records import CORE_EVENTS, OTHER_EVENTS
from spark_events.sources.event_log.records import RecordReader
from tests.support.paths import REPO

NAMES = {
    value
    for name, value in vars(spark_records).items()
    if isinstance(value, str) and name.isupper() and not name.startswith("_")
}
BRIDGE = REPO / "spark_events/sources/driver/java/DriverBridge.java"
BEFORE_ATTACH = {
    spark_records.LOG_START,
    spark_records.APPLICATION_START,
    spark_records.ENVIRONMENT_UPDATE,
}
"""Only event logs have the first; the others are posted before anybody can attach, so ``state.py`` makes them."""


def test_each_name_is_in_a_list() -> None:
    """A name in no list would never be heard, without a word."""
    of_core = {value for value in NAMES if value.startswith("SparkListener")}
    of_others = {value for value in NAMES if re.match(r"(?:org|io)\.", value)}

    assert of_core - {*CORE_EVENTS} == set(), "add it to spark_records.CORE_EVENTS"
    assert of_others - {*OTHER_EVENTS} == set(), "add it to spark_records.OTHER_EVENTS"


def test_the_driver_bridge_takes_each() -> None:
    """Spark's listeners have a method for each event of its core."""
    methods = set(re.findall(r"public void on(\w+)\(SparkListener\1 ", BRIDGE.read_text()))
    wanted = {name.removeprefix("SparkListener") for name in {*CORE_EVENTS} - BEFORE_ATTACH}

    assert wanted - methods == set(), f"add a method on… to {BRIDGE.name}; see onExecutorAdded"


@pytest.mark.parametrize("name", sorted({*CORE_EVENTS, *OTHER_EVENTS}))
def test_an_event_log_gives_each(name: str) -> None:
    """None counts as one that no event is made of."""
    reader = RecordReader(lambda record: None)
    reader.take_lines([b'{"Event":"%s"}\n' % name.encode()])

    assert (reader.counts.read, reader.counts.unused, reader.counts.unknown) == (1, 0, {})
