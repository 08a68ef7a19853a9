"""What is done with a query: every way through flink-sql-runner's diagram."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spark_events.sql_runner.deploy.decision import Action, Decision, Situation, decide, differences
from spark_events.sql_runner.deploy.planner import PlannedQuery, hosts_of
from spark_events.sql_runner.store.savepoints import QueryState

STATE = QueryState("savepoints/q/3/savepoint-x", 7, is_savepoint=True)
RUNNING = Situation(
    3, pending=False, running=True, query_changed="", configuration_changed=(), state=None, next_version=4
)
STOPPED = replace(RUNNING, running=False, state=STATE)
NEW = replace(STOPPED, deployed_version=None, state=None, next_version=1)
CONFIGURED = ("trigger: unset -> 1s",)
PLAN = "the plan of the query has changed"


@pytest.mark.parametrize(
    ("now", "action", "version"),
    [
        (NEW, Action.START, 1),
        (RUNNING, Action.NOTHING, 3),
        (replace(RUNNING, pending=True), Action.RECORD, 3),
        (replace(RUNNING, configuration_changed=CONFIGURED), Action.RESTART, 3),
        (replace(RUNNING, configuration_changed=CONFIGURED, pending=True), Action.RESTART, 3),
        (replace(RUNNING, query_changed=PLAN), Action.REPLACE, 4),
        (replace(RUNNING, query_changed=PLAN, configuration_changed=CONFIGURED), Action.REPLACE, 4),
        (STOPPED, Action.RESUME, 3),
        (replace(STOPPED, configuration_changed=CONFIGURED), Action.RESUME, 3),
        (replace(STOPPED, query_changed=PLAN), Action.START, 4),
        (replace(STOPPED, query_changed=PLAN, state=None), Action.START, 4),
        (replace(STOPPED, state=None), Action.FAIL, 3),
        (replace(STOPPED, state=None, configuration_changed=CONFIGURED), Action.FAIL, 3),
        (replace(STOPPED, state=None, clean=True), Action.START, 4),
        (replace(RUNNING, clean=True), Action.REPLACE, 4),
    ],
)
def test_the_diagram(now: Situation, action: Action, version: int) -> None:
    decision = decide(now)

    assert (decision.action, decision.version) == (action, version)
    assert decision.reason


def test_a_reason_says_what_has_changed_and_what_to_do() -> None:
    assert "trigger: unset -> 1s" in decide(replace(RUNNING, configuration_changed=CONFIGURED)).reason
    assert "savepoints/q/3/savepoint-x" in decide(STOPPED).reason
    failed = decide(replace(STOPPED, state=None)).reason
    assert "no savepoint or checkpoint of version 3" in failed
    assert "deploy-one --clean" in failed


def test_differences_name_each_key() -> None:
    before = {"a": 1, "p": {"x": "1", "y": "2"}, "t": {"u": "v"}}
    after = {"a": 1, "p": {"x": "1", "y": "3", "z": "4"}}

    assert differences(before, after) == ("p.y: '2' -> '3'", "p.z: unset -> '4'", "t.u: 'v' -> unset")


def test_only_what_can_run_needs_its_application() -> None:
    current: Any = None
    planned = [
        PlannedQuery("new", Decision(Action.START, 1, ""), current, host="session-a"),
        PlannedQuery("same", Decision(Action.NOTHING, 1, ""), current, host="session-b"),
        PlannedQuery("wrong", Decision(Action.FAIL, 1, ""), current, host="session-c"),
        PlannedQuery("gone", Decision(Action.STOP, 1, ""), current),
    ]

    assert hosts_of(planned) == {"session-a", "session-b"}
