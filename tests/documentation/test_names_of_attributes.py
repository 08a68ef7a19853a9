"""The names of attributes in the tables of docs/events.md and docs/spans.md follow docs/development.md.

``test_docs.py`` tests that all attributes which the listeners set are there.
"""

from __future__ import annotations

import re

import pytest

from tests.support.paths import REPO

ATTRIBUTE = re.compile(r"[a-z]+[a-z0-9]*([A-Z][a-z0-9]*)*(\.[a-z]+[a-z0-9]*([A-Z][a-z0-9]*)*)*")
OPEN_TELEMETRY = re.compile(r"(exception|code)\.[a-z_.]+")
SNAKE_CASE = {
    *("app_name", "app_id", "app_attempt_id", "job_kind", "query_name", "query_id", "run_id", "job_id"),
    *("stage_id", "stage_attempt", "partition", "task_attempt", "executor_id", "host", "sql_execution_id"),
    *("reporter", "reporter_kind"),
}
"""The variables, and the labels of the framework's own metrics."""


def attributes_by_event() -> dict[str, list[str]]:
    """Return the attributes in the first column of each event's table, and of each span's in the second."""
    found: dict[str, list[str]] = {}
    for section in re.split(r"^## ", (REPO / "docs" / "events.md").read_text(), flags=re.M)[1:]:
        title, _, text = section.partition("\n")
        if "| attribute | meaning |" in text:
            rows = re.findall(r"^\| (.+?) \| .*\|$", text, re.M)
            found[title] = [name for row in rows[1:] for name in _names(row)]
    spans = (REPO / "docs" / "spans.md").read_text().partition("## Attributes")[2]
    for span, text in re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", spans, re.M)[2:]:
        found[f"span {span}"] = _names(text.partition("; of ")[0])
    return found


def _names(cell: str) -> list[str]:
    cell = re.sub(r"\([^)]*\)|\[[^\]]*\]|`<[^>]*>`", "", cell)
    words = [word.strip(" ;:.`*") for word in re.split(r"[,;:]", cell)]
    return [word for word in words if re.fullmatch(r"[\w.]+", word)]


ATTRIBUTES = attributes_by_event()


def test_the_tables_are_read() -> None:
    """Each of the events with attributes, and the spans."""
    assert len(ATTRIBUTES) > 18
    assert {"newJobStatus", "exitCode"} <= {*ATTRIBUTES["JobStatusChangeEvent"]}
    assert "timeUseMs.driver" in ATTRIBUTES["span Application"]


@pytest.mark.parametrize("about", ATTRIBUTES)
def test_one_style(about: str) -> None:
    """Variables are in snake case, attributes in camel case; OpenTelemetry's have names of their own."""
    others = [name for name in ATTRIBUTES[about] if not OPEN_TELEMETRY.fullmatch(name)]

    assert [name for name in others if "_" in name and name not in SNAKE_CASE] == []
    assert [name for name in others if "_" not in name and not ATTRIBUTE.fullmatch(name)] == []


@pytest.mark.parametrize("about", ATTRIBUTES)
def test_none_is_both_a_value_and_a_group(about: str) -> None:
    """Some stores make objects of dots."""
    names = {*ATTRIBUTES[about]}

    assert [(one, other) for one in names for other in names if other.startswith(f"{one}.")] == []


def test_no_name_twice_in_one_event() -> None:
    """One that stands twice has two meanings, unless it is of several issues."""
    twice = {
        about: [name for name in {*names} if names.count(name) > 1]
        for about, names in ATTRIBUTES.items()
        if about != "PerformanceIssueEvent"
    }

    assert {about: names for about, names in twice.items() if names} == {}
    assert ATTRIBUTES["PerformanceIssueEvent"].count("stages") == 1
