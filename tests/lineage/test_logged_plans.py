"""Which records of plans are made of what an event log says, and when."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.jobs.logged_plans import LoggedQueryRun, LoggedStatement, PlanRecord
from spark_events.jobs.plan_records import (
    QUERY_LINEAGE,
    STATEMENT_CREATED,
    STATEMENT_ENDED,
    STATEMENT_LINEAGE,
)

ORDERS = {"identity": {"paths": ["/orders"]}, "modify": "INSERT", "columns": []}
TOTALS = {"identity": {"paths": ["/totals"]}, "modify": "INSERT", "columns": []}


def plan(*sinks: dict[str, Any]) -> dict[str, Any]:
    return {"sources": [], "sinks": list(sinks)}


def names(records: list[PlanRecord]) -> list[str]:
    return [record.name for record in records]


@pytest.mark.parametrize(
    ("node", "own", "parts", "begun", "of_parts", "ended"),
    [
        ("Scan", [], [], [STATEMENT_CREATED], [], [STATEMENT_ENDED]),
        ("Execute Insert", [ORDERS], [], [STATEMENT_CREATED], [], [STATEMENT_ENDED]),
        ("Execute Save", [], [], [], [], [STATEMENT_CREATED, STATEMENT_ENDED]),
        ("Execute Save", [], [[]], [], [], [STATEMENT_CREATED, STATEMENT_ENDED]),
        ("Execute Save", [], [[], [ORDERS]], [], [STATEMENT_CREATED], [STATEMENT_ENDED]),
        (
            "Execute Save",
            [],
            [[ORDERS], [TOTALS]],
            [],
            [STATEMENT_CREATED, STATEMENT_LINEAGE],
            [STATEMENT_ENDED],
        ),
        ("Scan", [], [[ORDERS]], [STATEMENT_CREATED], [STATEMENT_LINEAGE], [STATEMENT_ENDED]),
    ],
)
def test_a_statement_is_created_once_its_sink_is_known(
    node: str,
    own: list[dict[str, Any]],
    parts: list[list[dict[str, Any]]],
    begun: list[str],
    of_parts: list[str],
    ended: list[str],
) -> None:
    start = {"executionId": 7, "sparkPlanInfo": {"nodeName": node}}
    statement = LoggedStatement(start, 1_000, plan(*own))
    assert names(statement.begin()) == begun
    assert names([record for part in parts for record in statement.add_part(plan(*part), 2_000)]) == of_parts
    assert names(statement.end({"executionId": 7}, 3_000)) == ended


def test_a_statement_is_created_when_it_began_and_with_each_sink_once() -> None:
    start = {"executionId": 7, "sparkPlanInfo": {"nodeName": "Execute Save"}, "description": "save"}
    statement = LoggedStatement(start, 1_000, plan())
    (created,) = statement.add_part(plan(ORDERS), 2_000)
    assert (created.time_ms, created.fields["description"]) == (1_000, "save")
    (more,) = statement.add_part(plan(ORDERS, TOTALS), 3_000)
    assert (more.time_ms, more.fields["lineage"]["sinks"]) == (3_000, [ORDERS, TOTALS])
    (ended,) = statement.end({"executionId": 7, "errorMessage": "no"}, 4_000)
    assert ended.fields == {"executionId": 7, "failure": {"text": "no"}}


def test_a_query_waits_for_its_progress_and_has_what_its_batches_write() -> None:
    query = LoggedQueryRun("r1")
    assert query.add_part(plan(ORDERS), 1_000) == []
    (first,) = query.add_progress({"sources": [], "sink": {}}, 2_000)
    assert (first.name, first.fields["runId"]) == (QUERY_LINEAGE, "r1")
    assert first.fields["lineage"]["sinks"] == [ORDERS]
    assert query.add_progress({"sources": [], "sink": {}}, 3_000) == []
    assert query.add_part(plan(ORDERS), 3_000) == []
    (second,) = query.add_part(plan(TOTALS), 4_000)
    assert second.fields["lineage"]["sinks"] == [ORDERS, TOTALS]
