"""What an event log's plans of SQL executions say: the same shapes and files that the driver bridge reads."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.sources.event_log.execution_plans import ExecutionPlans
from tests.support import spark_records as r

_UI = "org.apache.spark.sql.execution.ui.SparkListener"


def node(name: str, *children: dict[str, Any], **metrics: int) -> dict[str, Any]:
    named = [{"name": key.replace("_", " "), "accumulatorId": number} for key, number in metrics.items()]
    return {"nodeName": name, "children": list(children), "metrics": named}


SCAN = node("Scan parquet ", number_of_files_read=1, size_of_files_read=2, scan_time=3)


def handled(*records: dict[str, Any]) -> dict[str, Any]:
    """Return the last record after all were handled."""
    plans = ExecutionPlans()
    for record in records:
        plans.handlers[record["Event"]](record)
    return records[-1]


def start(number: int, plan: dict[str, Any], root: int | None = None) -> dict[str, Any]:
    return r.execution("Start", 0, number, sparkPlanInfo=plan, rootExecutionId=root)


def updates(number: int, *updates: tuple[int, int]) -> dict[str, Any]:
    return {"Event": f"{_UI}DriverAccumUpdates", "executionId": number, "accumUpdates": updates}


def test_the_files_that_an_execution_reads_and_writes() -> None:
    """A new plan may have other metrics for its writing; what was read before counts on."""
    write = node("Execute InsertInto", SCAN, number_of_written_files=7, written_output=8)
    replanned = node("Execute InsertInto", SCAN, number_of_written_files=9, written_output=10)
    ended = handled(
        start(0, write),
        updates(0, (1, 150), (2, 4_000), (3, 99)),
        {"Event": f"{_UI}SQLAdaptiveExecutionUpdate", "executionId": 0, "sparkPlanInfo": replanned},
        updates(0, (9, 3), (10, 500)),
        r.execution("End", 1, 0),
    )
    assert ended["Files"] == {
        "Read": 150,
        "Read Bytes": 4_000,
        "Written": 3,
        "Written Bytes": 500,
        "Written Parts": 0,
    }


def test_a_part_of_an_execution_counts_for_the_whole() -> None:
    parts = (
        start(0, node("Execute CreateTable"), 0),
        start(1, SCAN, 0),
        updates(1, (1, 5)),
        r.execution("End", 1, 1),
    )
    assert handled(*parts, r.execution("End", 2, 0))["Files"]["Read"] == 5


def test_an_execution_without_files_has_none() -> None:
    assert "Files" not in handled(start(0, node("Range")), updates(0, (1, 5)), r.execution("End", 1, 0))
    assert "Files" not in handled(r.execution("End", 1, 0))


def test_the_shape_of_a_plan() -> None:
    """Names and their order, but not the numbers of generated code, nor what else differs in each run."""

    def shape(plan: dict[str, Any]) -> Any:
        return handled(start(0, plan))["Plan Shape"]

    plan = node("WholeStageCodegen (1)", node("Project", SCAN))
    assert shape(plan) == shape(node("WholeStageCodegen (2)", node("Project", node("Scan parquet "))))
    assert shape(plan) != shape(node("WholeStageCodegen (1)", node("Project"), SCAN))
    assert shape(plan) != shape(node("WholeStageCodegen (1)", node("Filter", SCAN)))


def test_what_is_said_of_state_is_kept_of_a_long_text() -> None:
    text = f"StreamingSymmetricHashJoin [{'user, ' * 200}], state cleanup [ left = null, right = null ], 2, Append"
    join = {**node("StreamingSymmetricHashJoin"), "simpleString": text}
    ended = handled(start(0, join), r.execution("End", 1, 0))
    told = ended["Plans"][0][0][2]
    assert told == text[:500] + ", state cleanup [ left = null, right = null ], 2, Append"


@pytest.mark.parametrize(("conditions", "counted"), [(60, ", conditions of CASE [60]"), (49, "")])
def test_the_conditions_of_a_long_text_are_counted(conditions: int, counted: str) -> None:
    text = (
        "Project [CASE"
        + "".join(f" WHEN (code#1 = C{n:03d}) THEN {n}" for n in range(conditions))
        + " END AS g#2]"
    )
    ended = handled(start(0, {**node("Project"), "simpleString": text}), r.execution("End", 1, 0))
    assert ended["Plans"][0][0][2] == text[:500] + counted


@pytest.mark.parametrize(("shown", "counted"), [(24, ", conditions of CASE [300]"), (19, "")])
def test_the_conditions_of_aggregates_that_spark_leaves_out(shown: int, counted: str) -> None:
    """They are taken to be like those that it shows."""
    of = ", ".join(f"partial_sum(CASE WHEN (t#5 = {n}) THEN value#6 END)" for n in range(shown))
    text = f"HashAggregate(keys=[patient#4L], functions=[{of}, ... {300 - shown} more fields])"
    ended = handled(start(0, {**node("HashAggregate"), "simpleString": text}), r.execution("End", 1, 0))
    assert ended["Plans"][0][0][2] == text[:500] + counted


def test_a_window_of_time_has_a_short_text() -> None:
    """Spark's own says each bound of it, in hundreds of characters, so that nothing else would be kept."""
    bound = (
        "precisetimestampconversion(((precisetimestampconversion(ts#18-T600000ms, TimestampType, LongType) - "
        "CASE WHEN (((precisetimestampconversion(ts#18-T600000ms, TimestampType, LongType) - 0) % 300) < 0) "
        "THEN 1 ELSE 2 END) - 0), LongType, TimestampType)"
    )
    for of in ("{}", "knownnullable({})"):
        window = f"named_struct(start, {of.format(bound)}, end, {of.format(bound)})"
        text = f"Expand [[{window} AS window#13, user#19], [{window}, sha2(user#19, 256)]]"
        told = handled(start(0, {**node("Expand"), "simpleString": text}), r.execution("End", 1, 0))
        assert told["Plans"][0][0][2] == (
            "Expand [[window(ts#18) AS window#13, user#19], [window(ts#18), sha2(user#19, 256)]]"
        )
    cut = f"Project [named_struct(start, {bound}"
    told = handled(start(0, {**node("Project"), "simpleString": cut}), r.execution("End", 1, 0))
    assert told["Plans"][0][0][2] == cut[:500]


def test_files_that_the_sink_of_a_stream_writes() -> None:
    """No plan has its metrics: six of them, made one after the other, of which Spark tells all but the fifth."""
    written = ((42, 2_400), (47, 843), (44, 20_000), (45, 1_200), (43, 1_308_491))
    ended = handled(start(0, SCAN), updates(0, (1, 3)), updates(0, *written), r.execution("End", 1, 0))
    assert (ended["Files"]["Written"], ended["Files"]["Written Bytes"]) == (2_400, 1_308_491)
    assert (ended["Files"]["Read"], ended["Files"]["Written Parts"]) == (3, 1_200)


def test_metrics_that_are_of_no_sink() -> None:
    for of in (((42, 7), (43, 7), (44, 7), (45, 7), (46, 7)), ((42, 7), (43, 7), (44, 7)), ()):
        assert "Files" not in handled(start(0, SCAN), updates(0, *of), r.execution("End", 1, 0))
