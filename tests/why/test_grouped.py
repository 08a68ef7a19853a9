"""Issues of many stages that a reader takes for one: those of one place in the code, or of one query."""

from __future__ import annotations

import pytest

from spark_events.why.answer import answer
from spark_events.why.found_issue import FoundIssue, order
from spark_events.why.grouped import grouped


def issue(
    about: str,
    lost_ms: int | None = None,
    kind: str = "python",
    sentence: str = "it waits",
    **evidence: object,
) -> FoundIssue:
    return FoundIssue(kind, "WARN", about, sentence, "do it", lost_ms, None, evidence)


def of_stages(*lost_ms: int | None, place: str = "sum at app.py:7", **evidence: object) -> list[FoundIssue]:
    return [issue(f"stage {n}.0 ({place})", lost, **evidence) for n, lost in enumerate(lost_ms)]


def test_stages_of_one_place_are_one_issue() -> None:
    """With what they cost together, and the words of the costliest."""
    few = of_stages(1_000, 9_000, 2_000, kind="task-count", fewTasks=True)
    few[1] = issue(few[1].about, 9_000, "task-count", "one task of 15 s", fewTasks=True)
    (told,) = grouped(few)
    assert (told.about, told.lost_ms, told.evidence["stages"]) == ("3 stages (sum at app.py:7)", 12_000, 3)
    assert told.sentence == "in 3 stages, the costliest: one task of 15 s"
    assert told.advice.endswith("at the same time, from threads.")


def test_what_may_be_lost_is_added_up_too() -> None:
    (told,) = grouped(of_stages(None, None, shareMs=4_000))
    assert (told.lost_ms, told.cost) == (None, "8.0 s in all")


def test_what_is_known_to_cost_little_hides_nothing_that_may_cost_much() -> None:
    stages = [*of_stages(333), *of_stages(None, None, shareMs=4_000)]
    assert {(told.lost_ms, told.cost) for told in grouped(stages)} == {
        (333, "333 ms"),
        (None, "8.0 s in all"),
    }


def test_scans_of_one_table_are_one_issue() -> None:
    """One condition that is missing, of a view, say, costs each query that reads it; others are another's."""
    of_table = {"kind": "full-scan", "sentence": "reads all", "scan.table": "tracking"}
    scans = [issue(f"SQL execution {n} (parquet of tracking)", 4_000 + n, **of_table) for n in range(3)]
    other = issue("SQL execution 9 (parquet of rides)", 5_000, **{**of_table, "scan.table": "rides"})
    one, alone = grouped([*scans, other])
    assert (one.about, one.lost_ms) == ("3 SQL executions (parquet of tracking)", 12_003)
    assert one.sentence == "in 3 SQL executions, the costliest: reads all"
    assert alone == other


def test_scans_whose_filters_convert_another_column_are_told_apart() -> None:
    """And from those of partitions: the answer says which column it is."""
    of_table = {"kind": "full-scan", "sentence": "reads all", "scan.table": "tracking"}
    by_column = [
        issue(f"SQL execution {n} (parquet of tracking)", None, shareMs=4_000, **of_table, **column)
        for n, column in enumerate(({"scan.column": "line"}, {"scan.column": "stop"}, {}))
    ]
    assert len(grouped(by_column)) == 3


def test_executions_of_one_place_are_one_issue() -> None:
    """As those of a loop; of two joins in each of them, those that cost more are one, and the others another."""
    joins = [
        issue(f"SQL execution {n} (count at app.py:7)", lost_ms, "missing-broadcast", f"moves {size} MiB")
        for n in range(3)
        for lost_ms, size in ((5_000 + n, 100 + n), (1_000, 10))
    ]
    first, second = grouped(joins)
    assert (first.about, first.lost_ms) == ("3 SQL executions (count at app.py:7)", 15_003)
    assert first.sentence == "in 3 SQL executions, the costliest: moves 102 MiB"
    assert (second.about, second.lost_ms) == (first.about, 3_000)
    assert grouped(joins[:2]) == joins[:2]


def test_changes_of_one_table_are_one_issue() -> None:
    """The description of a MERGE has no line of the program."""
    about = "sql of file:/sales, file:/customers"
    (merges,) = grouped(
        [issue(f"SQL execution {n} ({about})", 8_000, "rewrite-whole-files") for n in range(3)]
    )
    assert (merges.about, merges.lost_ms) == (f"3 SQL executions ({about})", 24_000)


def test_what_is_listed_of_executions_of_one_place_is_of_all() -> None:
    lists = [{"expand.stages": "1, 2"}, {"expand.stages": "5"}]
    (told,) = grouped(
        issue(f"SQL execution {n} (count at app.py:7)", None, "expanded-rows", shareMs=5_000, **each)
        for n, each in enumerate(lists)
    )
    assert told.evidence["expand.stages"] == "1, 2, 5"
    assert told.cost == "10.0 s in all"


def test_functions_of_a_query_are_told_apart() -> None:
    """By their names; how many stages each has is said of all."""
    said = (
        "88% of the run time is spent in Python functions",
        "in 7 stages, the latest: 98% is spent in them",
    )
    risk = [
        issue("query 'orders'", 3_000, sentence=f"{text}: risk", stagesSeen=n)
        for text, n in zip(said, (1, 7), strict=True)
    ]
    other = issue("query 'orders'", 1_000, sentence=f"{said[0]}: price")
    assert [(told.lost_ms, told.sentence.rpartition(": ")[2]) for told in grouped([*risk, other])] == [
        (6_000, "risk"),
        (1_000, "price"),
    ]
    assert grouped(risk)[0].sentence.startswith("in 8 stages, the costliest: 88%")


def test_runs_of_a_query_are_told_apart() -> None:
    """What each has lost is a part of its own time, not of another one's."""
    runs = [issue("query 'orders'", 5_000, durationMs=6_000, run_id=run_id) for run_id in ("a", "b")]
    assert grouped(runs) == runs
    assert answer(grouped(runs), 60_000, None).startswith(
        "The work of query 'orders' spends 83 % of its time, 5.0 s, in Python functions"
    )


@pytest.mark.parametrize(
    "alone",
    [
        of_stages(1, place="sum at app.py:7") + of_stages(1, place="sum at app.py:8"),
        of_stages(1, 1, place="query of file:/data"),
        of_stages(1) + of_stages(1, kind="gc"),
        of_stages(1, kind="task-count", fewTasks=True) + of_stages(1, kind="task-count"),
        of_stages(1, 1, kind="full-scan"),
        [issue(f"SQL execution {n} (query of file:/data)", 1, "cross-join") for n in range(2)],
        [issue(f"SQL execution {n} (count at a.py:7)", 1, "recomputation") for n in range(2)],
        [issue(f"{of} (count at a.py:7)", 1, "task-count") for of in ("SQL execution 1", "stage 1.0")],
        [issue(f"SQL execution {n} (count at a.py:7)", 1, "task-count") for n in range(2)],
        [issue("application 'x'", 1, "regression")] * 2,
    ],
    ids=[
        "other lines",
        "no line",
        "other kinds",
        "few and many tasks",
        "a plan's",
        "no line of a plan",
        "told of all",
        "a plan's and a stage's",
        "of stages",
        "an application's",
    ],
)
def test_others_are_told_alone(alone: list[FoundIssue]) -> None:
    assert grouped(alone) == alone


def test_memory_slows_nothing_and_comes_last() -> None:
    memory = FoundIssue("memory", "INFO", "application 'x'", "", "", None, 1 << 30, {})
    slow = issue("stage 0.0 (sum at app.py:7)", shareMs=9_000)
    assert sorted([memory, slow], key=order) == [slow, memory]


def test_what_may_be_for_nothing_comes_before_functions_that_are_needed() -> None:
    """Though these take longer. Where it is not known how much of it is, half counts."""
    python, again = issue("a", shareMs=100_000), issue("b", kind="recomputation", shareMs=40_000)
    of_rdd = issue("e", kind="recomputation", shareMs=90_000, **{"recomputation.what": "RDD 11"})
    assert sorted([of_rdd, python, issue("f", 1_000)], key=order)[1:] == [of_rdd, python]
    longer, shorter = issue("c", 21_000, kind="straggler"), issue("d", 19_000, kind="gc")
    assert sorted([python, shorter, again, longer], key=order) == [longer, again, shorter, python]
    assert (
        answer([again, python], 200_000, {})
        == "Of its time, 20 %, 40.0 s, may go to computing the same thing again."
    )
