"""Each name in our column of docs/flink.md exists in a real run."""

from __future__ import annotations

import re

import pytest

from spark_events.api import snake_case
from spark_events.runtime.plugins import KINDS, installed, load_factory
from spark_events.sources.attaching.unknown_keys import OF_REPORTERS, OF_THE_FRAMEWORK
from tests.support.live_application import Live
from tests.support.paths import REPO

pytestmark = pytest.mark.spark


def names(section: str) -> list[str]:
    """Return the names in our column of a section's table."""
    page = (REPO / "docs" / "flink.md").read_text()
    (body,) = re.findall(rf"## {section}\n(.*?)(?:\n## |\Z)", page, re.DOTALL)
    rows = [line.strip("|").split("|") for line in body.splitlines() if line.startswith("| ")][1:]
    assert {len(row) for row in rows} == {3}
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row[1])]


def test_metrics(live: Live) -> None:
    """Each is served, under Prometheus' form of its name."""
    pages = live.metrics_while_running + live.metrics
    served = set(re.findall(r"^(\w+?)[{ ]", pages, re.MULTILINE))
    unit = "(_seconds|_bytes|_per_second)?(_total|_bucket)?"

    def is_served(name: str) -> bool:
        full = "_".join(["spark", *(snake_case(part) for part in name.split("."))])
        return any(re.fullmatch(full + unit, one) for one in served)

    assert [name for name in names("Metrics") if not is_served(name)] == []
    assert len(names("Metrics")) > 70


def test_spans(live: Live) -> None:
    """Each is the name of a span, or of an attribute of one."""
    seen = {span["name"] for span in live.spans} | {key for span in live.spans for key in span["attributes"]}

    assert [name for name in names("Spans") if name not in seen] == []
    assert len(names("Spans")) > 20


def test_events(live: Live) -> None:
    """Each is the name of an event."""
    seen = {event["eventName"] for event in live.events}

    assert [name for name in names("Events") if name not in seen] == []
    assert len(names("Events")) == 4


def test_options() -> None:
    """Each is a key of the framework, or an option of a reporter."""
    known = {setting.option.name for setting in (*OF_THE_FRAMEWORK, *OF_REPORTERS)}
    known |= {kind.names_key for kind in KINDS}
    for kind in KINDS:
        for name in installed(kind.entry_points):
            known.add(name)
            known |= {option.name for option in load_factory(kind, name, "key").options or ()}

    assert [name for name in names("Options") if name not in known] == []
    assert len(names("Options")) > 30
