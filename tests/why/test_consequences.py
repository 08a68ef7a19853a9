"""What a cache leads to that nothing reads is told after it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_events.why.answer import answer
from spark_events.why.consequences import (
    causes_first,
    with_calls_again,
    with_lost_executors,
    with_parsing,
    with_reads,
    with_work_on_results,
    without_held_up_starts,
)
from spark_events.why.found_issue import FoundIssue
from spark_events.why.loops import with_loops_in_turn, with_reads_of_loops, without_idle_cores_of_loops

S = 1_000


def gc(stage: str, kind: str = "gc") -> FoundIssue:
    return FoundIssue(kind, "WARN", f"stage {stage} (collect at a.py:1)", "…", "…", 16 * S, None, {})


def cache(*stages: int) -> FoundIssue:
    evidence = {"cache.stages": ", ".join(map(str, stages)), "shareMs": 139 * S}
    return FoundIssue("cache-never-read", "WARN", "application 'a'", "…", "…", None, None, evidence)


def test_rows_of_an_aggregation_are_told_before_the_memory_that_they_take() -> None:
    evidence = {"expand.stages": "4", "shareMs": 100 * S}
    rows = FoundIssue("expanded-rows", "WARN", "SQL execution 1", "…", "…", None, None, evidence)
    assert causes_first([gc("4.0"), gc("5.0"), rows]) == [rows, gc("4.0"), gc("5.0")]


@pytest.mark.parametrize("kind", ["gc", "spill"])
def test_a_cache_is_told_before_the_memory_that_its_stages_lack(kind: str) -> None:
    unread = cache(3, 4)
    assert causes_first([gc("4.0", kind), unread]) == [unread, gc("4.0", kind)]
    assert answer([unread, gc("4.0", kind)], 241 * S, {}) == (
        "Of its time, 58 %, 2 min 19 s, goes to stages that fill a cache which nothing reads."
    )


def test_what_other_stages_lack_stays_where_it_is() -> None:
    for told in ([gc("14.0"), cache(3, 4)], [gc("4.0", "skew"), cache(4)], [gc("4.0")], []):
        assert causes_first(told) == told


def repeated(what: str, times: int = 10, lost_s: int | None = None, share_s: int | None = None) -> FoundIssue:
    evidence = {"recomputation.what": what, "recomputation.times": times}
    evidence |= {"shareMs": share_s * S} if share_s else {}
    lost_ms = lost_s * S if lost_s else None
    return FoundIssue(
        "recomputation", "INFO", "application 'a'", f"{what}: again", "…", lost_ms, None, evidence
    )


PARSED = repeated("what from_json makes of file:/data/decl", share_s=124)


def test_parsing_a_text_is_a_part_of_computing_its_rows_again() -> None:
    rows = repeated("the same Project, Filter of file:/data/decl", lost_s=124)
    (told,) = with_parsing([rows, PARSED])
    assert told == replace(rows, sentence=f"{rows.sentence}; each time, from_json parses it")


@pytest.mark.parametrize(
    "other",
    [
        repeated("the same Project, Filter of file:/data/other", lost_s=124),
        repeated("the same Project of file:/data/decl, file:/data/decl2", lost_s=124),
        repeated("the same Project, Filter of file:/data/decl", times=9, lost_s=124),
        repeated("the same Project, Filter of file:/data/decl", lost_s=100),
        repeated("the same Project, Filter of file:/data/decl", share_s=124),
    ],
    ids=["of other files", "of two tables", "more rarely", "that takes less", "that is not known"],
)
def test_parsing_that_is_more_than_what_is_computed_again(other: FoundIssue) -> None:
    assert with_parsing([other, PARSED]) == [other, PARSED]


TEXT = "the rows of the CSV of file:/data/bets"


@pytest.mark.parametrize("known", [True, False])
def test_what_filters_of_text_files_take_again_is_their_parsing(known: bool) -> None:
    def of(what: str, seconds: int) -> FoundIssue:
        return repeated(what, lost_s=seconds) if known else repeated(what, share_s=seconds)

    rows, parsed = of("the same Filter of file:/data/bets", 65), of(TEXT, 63)
    parsed = replace(parsed, sentence="CSV of file:/data/bets is parsed 30 times", advice="Read it once.")
    (told,) = with_parsing([rows, parsed])
    assert (told.sentence, told.advice) == (parsed.sentence, parsed.advice)
    assert told.evidence["recomputation.what"] == TEXT
    assert (told.lost_ms, told.number("shareMs")) == (rows.lost_ms, rows.number("shareMs"))


@pytest.mark.parametrize(
    "rows",
    [
        repeated("the same Filter, Sort of file:/data/bets", lost_s=65),
        repeated("the same Filter of file:/data/bets", lost_s=99),
        repeated("the same Filter of file:/data/bets", share_s=65),
    ],
    ids=["more than filters", "that takes far longer", "that is not known"],
)
def test_what_takes_more_than_parsing(rows: FoundIssue) -> None:
    parsed = repeated(TEXT, lost_s=63)
    assert with_parsing([rows, parsed]) == [rows, parsed]


@pytest.mark.parametrize(
    ("loads_s", "loaded_by", "is_first"),
    [
        ((94,), {"python.loadedBy": 100}, True),
        ((53, 47), {"python.loadedBy": 30}, True),
        ((60,), {"python.loadedBy": 100}, False),
        ((94,), {}, False),
    ],
    ids=["one stage", "two that may do the same", "no more than what is computed twice", "of few tasks"],
)
def test_what_each_task_loads_comes_before_rdds_that_are_computed_again(
    loads_s: tuple[int, ...], loaded_by: dict[str, int], is_first: bool
) -> None:
    evidence = {"recomputation.what": "the RDD of /data/returns", "shareMs": 34 * S}
    again = FoundIssue("recomputation", "INFO", "application 'a'", "…", "…", None, None, evidence)
    loads = [
        FoundIssue(
            "python", "INFO", f"stage {number}.0", "…", "…", None, None, {"shareMs": share_s * S, **loaded_by}
        )
        for number, share_s in enumerate(loads_s)
    ]
    expected = [loads[0], again, *loads[1:]] if is_first else [again, *loads]
    assert causes_first([again, *loads]) == expected


def churn(about: str = "application 'a'") -> FoundIssue:
    return FoundIssue("executor-churn", "WARN", about, "2 executors were lost", "…", 13 * S, None, {})


def test_what_executors_took_with_them_is_a_part_of_having_lost_them() -> None:
    again = replace(
        churn(), kind="retries", sentence="3 tasks run again", lost_ms=52 * S, evidence={"repeats": True}
    )
    (told,) = with_lost_executors([again, churn()])
    assert (told.kind, told.lost_ms) == ("executor-churn", 65 * S)
    assert told.sentence == "2 executors were lost. Besides, 3 tasks run again"
    assert answer([told], 200 * S, {}) == (
        "It would take 2 min 15 s instead of 3 min 20 s without the loss of executors."
    )


def test_what_a_query_makes_again_stays_its_own() -> None:
    of_query = replace(
        churn("stage 3.1 (query 'q')"), kind="retries", lost_ms=90 * S, evidence={"repeats": True}
    )
    of_all = replace(churn(), kind="retries", lost_ms=52 * S, evidence={"repeats": True})
    own, both = with_lost_executors([of_query, of_all, churn()])
    assert own == of_query
    assert (both.kind, both.lost_ms) == ("executor-churn", 65 * S)


def test_tasks_that_run_again_for_another_reason() -> None:
    failed = replace(churn(), kind="retries", evidence={"failedTasks": 3})
    for issues in ([failed, churn()], [replace(failed, evidence={"repeats": True})], [churn()]):
        assert with_lost_executors(issues) == issues


def loop(method: str, lost_s: int, begun_s: int, ended_s: int, jobs: int = 45) -> FoundIssue:
    evidence = {
        "loop.place": f"{method} at a.py:22",
        "loop.jobs": jobs,
        "loop.begunMs": begun_s * S,
        "loop.endedMs": ended_s * S,
    }
    return FoundIssue(
        "loop-of-small-jobs", "WARN", "application 'a'", method, "…", lost_s * S, None, evidence
    )


def test_loops_whose_jobs_run_in_turn_are_one() -> None:
    """So they come before what costs more than each of them."""
    driver = FoundIssue("idle-cores", "INFO", "application 'a'", "…", "…", 24 * S, None, {})
    mean, std = loop("mean", 16, 10, 60), loop("std", 13, 11, 61)
    told, after = with_loops_in_turn([driver, mean, std])
    assert after == driver
    assert (told.lost_ms, told.evidence["loop.jobs"]) == (29 * S, 90)
    assert told.sentence == "mean. In turn with them run 45 of std at a.py:22, which cost 13.0 s of this"


@pytest.mark.parametrize(
    ("about", "kind", "evidence", "is_told"),
    [
        ("45 stages (mean at a.py:22)", "task-count", {"fewTasks": True, "stages": 45}, False),
        ("23 stages (mean at a.py:22)", "straggler", {"stages": 23}, False),
        ("stage 4.0 (mean at a.py:22)", "straggler", {}, True),
        ("22 stages (mean at a.py:22)", "task-count", {"fewTasks": True, "stages": 22}, True),
        ("45 stages (mean at a.py:23)", "task-count", {"fewTasks": True, "stages": 45}, True),
        ("45 stages (mean at a.py:22)", "task-count", {"stages": 45}, True),
        ("45 stages (mean at a.py:22)", "python", {"stages": 45}, True),
    ],
    ids=["few", "late", "one turn alone", "a few turns", "of another place", "many", "functions"],
)
def test_idle_cores_of_a_loop_are_a_part_of_it(
    about: str, kind: str, evidence: dict[str, object], is_told: bool
) -> None:
    """It costs what all cores would not need."""
    other = FoundIssue(kind, "WARN", about, "", "…", 9 * S, None, evidence)
    mean = loop("mean", 16, 10, 60)
    assert without_idle_cores_of_loops([mean, other]) == ([mean, other] if is_told else [mean])


def test_one_loop_after_the_other() -> None:
    loops = [loop("mean", 16, 10, 60), loop("std", 13, 55, 99), loop("max", 12, 10, 30)]
    assert with_loops_in_turn(loops) == loops


@pytest.mark.parametrize(
    ("table", "takes_s", "comes_first"),
    [("file:/clicks", 56, True), ("file:/orders", 56, False), ("file:/clicks", 40, False)],
)
def test_partitions_that_a_loop_need_not_read_come_before_parsing_them_again(
    table: str, takes_s: int, comes_first: bool
) -> None:
    what = {"recomputation.what": "the rows of the CSV of file:/clicks"}
    again = FoundIssue("recomputation", "WARN", "application 'a'", "…", "…", 41 * S, None, what)
    evidence = {"scan.table": table, "shareMs": takes_s * S}
    scan = FoundIssue("full-scan", "WARN", "10 SQL executions", "…", "…", None, None, evidence)
    assert causes_first([again, scan]) == ([scan, again] if comes_first else [again, scan])
    part = replace(again, evidence={"recomputation.what": "the same Filter of file:/clicks"})
    assert causes_first([part, scan]) == [part, scan]  # other queries may compute it than those that scan


def alone(after_s: int, place: str = "collect at a.py:27") -> FoundIssue:
    evidence = {
        "driverAloneMs": 20 * S,
        "driverAlone.afterResultOf": place,
        "driverAlone.afterResultMs": after_s * S,
    }
    return FoundIssue(
        "idle-cores", "WARN", "application 'a'", "only the driver", "Do it in Spark.", 20 * S, None, evidence
    )


def test_the_work_on_a_result_is_told_with_bringing_it_to_the_driver() -> None:
    """Of one defect, whoever reads it would see two halves."""
    evidence = {"collect.place": "collect at a.py:27"}
    collect = FoundIssue(
        "collect", "WARN", "application 'a'", "brings 55 MiB", "Collect less.", 14 * S, None, evidence
    )
    (both,) = with_work_on_results([alone(17), collect])
    assert (both.kind, both.lost_ms, both.advice) == ("collect", 31 * S, "Collect less. Do it in Spark.")
    assert both.sentence == "brings 55 MiB; only the driver works for another 17.0 s after that"
    assert answer([both], 70 * S, {}) == (
        "For 44 % of its time, 31.0 s, only the driver works or waits: all of it after collect at a.py:27."
    )
    for other in (alone(13), alone(17, "toPandas at a.py:3")):
        assert with_work_on_results([other, collect]) == [other, collect]


def files(verb: str, execution: int, lost_s: int, tables: str = "file:/lake") -> FoundIssue:
    evidence = {"sql_execution_id": str(execution), "fileTables": tables}
    sentence = f"{verb} 3,600 files of {tables}"
    about = f"SQL execution {execution}"
    return FoundIssue("small-files", "WARN", about, sentence, "…", lost_s * S, None, evidence)


def test_files_that_are_read_again_are_told_with_those_that_were_written() -> None:
    other = files("writes", 0, 60, "file:/other")
    first, second = with_reads(
        [other, files("writes", 1, 55), files("reads", 3, 11), files("reads", 4, 1)],
    )
    assert (first.lost_ms, first.about) == (67 * S, "SQL execution 1")
    assert first.sentence == (
        "writes 3,600 files of file:/lake. Of the cost, 12.0 s is for reading these files again, in 2 SQL "
        "executions"
    )
    assert second == other


def tasks(execution: int, name: str, few: bool = False) -> FoundIssue:
    evidence = {"sql_execution_id": str(execution), **({"fewTasks": True} if few else {})}
    return FoundIssue("task-count", "WARN", f"stage 7.0 ({name})", "…", "…", 4 * S, None, evidence)


@pytest.mark.parametrize("place", ["", ", etl.py:31"], ids=["of a log", "of a live driver"])
def test_tasks_that_read_such_files_are_told_with_them(place: str) -> None:
    """There are many because the files are many."""
    of_tasks = tasks(3, "query of file:/lake into file:/out")
    both = [files("writes", 1, 55), files("reads", 3, 11), replace(of_tasks, about=of_tasks.about + place)]
    (issue,) = with_reads(both)
    assert issue.lost_ms == 70 * S
    assert issue.sentence.endswith("Of the cost, 15.0 s is for reading these files again, in SQL execution 3")


@pytest.mark.parametrize(
    "other",
    [
        tasks(3, "query of file:/lake", few=True),
        tasks(3, "query of file:/lake, file:/other"),
        tasks(3, "query of file:/other into file:/lake"),
        tasks(0, "query of file:/lake"),
    ],
    ids=["too few", "of other tables, too", "that write them", "before"],
)
def test_other_tasks_are_told_alone(other: FoundIssue) -> None:
    assert with_reads([files("writes", 1, 55), other]) == [files("writes", 1, 55), other]


@pytest.mark.parametrize(
    "told",
    [
        [files("writes", 3, 9), files("reads", 1, 5)],
        [files("writes", 1, 9), files("reads", 3, 5, "file:/other")],
        [files("writes", 1, 9, ""), files("reads", 3, 5, "")],
        [files("reads", 1, 9), files("reads", 3, 5)],
        [files("writes", 1, 9), files("writes", 3, 5)],
    ],
    ids=["before", "elsewhere", "anywhere", "no write", "no read"],
)
def test_other_files_are_told_alone(told: list[FoundIssue]) -> None:
    assert with_reads(told) == told


def again(about: str, what: str, lost_s: int, **evidence: object) -> FoundIssue:
    known = {f"recomputation.{name}": value for name, value in {"what": what, **evidence}.items()}
    return FoundIssue("recomputation", "WARN", about, f"{what} again", "…", lost_s * S, None, known)


def test_calls_that_are_told_of_each_execution_are_a_part_of_all_calls() -> None:
    """Whatever other issues have had of the time, a cache saves all of it."""
    whole = again("application 'a'", "clean", 20, calls=180_000, callsOf="clean(text#5)#6", callsMs=76 * S)
    parts = [
        again("SQL execution 0 (first at a.py:1)", "clean", 13, callsOf="clean(text#5)#6"),
        again("application 'a'", "the same Filter of file:/raw", 10, callsOf="clean(text#5)#6"),
    ]
    others = [
        again("SQL execution 0 (first at a.py:1)", "parse", 9),
        again("SQL execution 4 (first at a.py:9)", "clean", 8, callsOf="clean(text#15)#16"),
        again("application 'a'", "the same Filter of file:/raw", 7, callsOf="clean(text#5)#6, parse(a#1)#2"),
        again("query 'q'", "clean", 6, callsOf="clean(text#5)#6"),
    ]
    told = with_calls_again([whole, *parts, *others])

    assert told[1:] == others
    assert (told[0].lost_ms, told[0].sentence) == (
        76 * S,
        "clean again. In SQL execution 0 (first at a.py:1), clean again",
    )


def start(start_s: int, others_s: int = 0) -> FoundIssue:
    evidence = {"driverAlone.startMs": start_s * S, "driverAlone.usualStartMs": 20 * S}
    alone = FoundIssue("idle-cores", "INFO", "application 'a'", "…", "…", 0, None, evidence)
    return replace(alone, lost_ms=(start_s - 20 + others_s) * S)


@pytest.mark.parametrize(
    ("issue", "cpu_share", "told"),
    [
        (start(29), 0.3, False),
        (start(29), 0.9, True),
        (start(29), None, True),
        (start(80), 0.3, True),
        (start(40), 0.1, True),
        (start(29, others_s=30), 0.3, True),
        (gc("4.0"), 0.1, True),
    ],
    ids=[
        "on a busy machine",
        "on an idle one",
        "unknown",
        "long all the same",
        "tasks that wait for a disk",
        "pauses later",
        "another",
    ],
)
def test_a_start_that_waits_for_a_cpu_as_tasks_do(
    issue: FoundIssue, cpu_share: float | None, told: bool
) -> None:
    assert without_held_up_starts([issue], cpu_share) == ([issue] if told else [])


@pytest.mark.parametrize("at", ["collect at bom.py:22", "collect at bom.py:23"])
def test_what_the_jobs_of_a_loop_read_again_is_a_part_of_the_loop(at: str) -> None:
    """340 small jobs of 42 s, of which all cores could do what they do in 20 s, by reading a table each time."""
    place = "collect at bom.py:22"
    loop = FoundIssue(
        "loop-of-small-jobs",
        "INFO",
        "application 'a'",
        "340 jobs",
        "Join.",
        22 * S,
        None,
        {"loop.place": place},
    )
    reads = FoundIssue(
        "recomputation",
        "INFO",
        "application 'a'",
        f"{at} reads /bom",
        "Once.",
        20 * S,
        None,
        {"recomputation.readAt": at},
    )
    told = with_reads_of_loops([loop, reads])
    if at != place:
        assert told == [loop, reads]
        return
    (whole,) = told
    assert (whole.lost_ms, whole.advice) == (42 * S, "Join. Once.")
    assert (
        whole.sentence
        == "340 jobs. Of the cost, 20.0 s is for what they read: collect at bom.py:22 reads /bom"
    )
