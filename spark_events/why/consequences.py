"""Issues that another one leads to: told after it, for whoever mends that mends them, too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.rdds.repeated_stages import MADE_AGAIN
from spark_events.diagnosis.repeated_work.called_too_often import CALLS, CALLS_MS
from spark_events.diagnosis.repeated_work.called_twice import CALLS_OF
from spark_events.diagnosis.repeated_work.parsed_files import MAKES, ROWS_OF_TEXT, WHAT
from spark_events.diagnosis.stages.python_time import LOADED_BY
from spark_events.diagnosis.thresholds import (
    EXECUTOR_CHURN,
    EXPANDED_ROWS,
    FULL_SCAN,
    GC,
    LATE_FILTER,
    NO_DUPLICATES,
    RECOMPUTATION,
    SMALL_FILES,
    SPILL,
    TASK_COUNT,
    UNREAD_CACHE,
)
from spark_events.diagnosis.times.collected_results import COLLECTED_AT
from spark_events.diagnosis.times.driver_issues import (
    AFTER_RESULT_MS,
    AFTER_RESULT_OF,
    START_MS,
    USUAL_START_MS,
)
from spark_events.diagnosis.writes.small_files import TABLES
from spark_events.why.found_issue import FoundIssue, order
from spark_events.why.loops import (
    with_loops_in_turn,
    with_reads_of_loops,
    without_idle_cores_of_loops,
)
from spark_events.why.places import name_in

_TAKE_MEMORY = {
    UNREAD_CACHE: "cache.stages",
    EXPANDED_ROWS: "expand.stages",
    NO_DUPLICATES: "duplicates.stages",
    LATE_FILTER: "lateFilter.stages",
}
"""The issues that take memory, and which evidence says of which stages."""
_MOST_AFTER_RESULT = 0.7
_FAR_MORE = 2
_LITTLE_MORE = 1.25
_TIMES = "recomputation.times"
_LACK_MEMORY = (GC, SPILL)
_EXECUTION = "sql_execution_id"
_LONGEST_START = 1.5
"""How many times as long as usual a start may take that a busy machine explains."""


def in_order(issues: Iterable[FoundIssue]) -> list[FoundIssue]:
    """Return issues, sorted again, with what others are a part of, and what leads to others before these."""
    alone = without_idle_cores_of_loops(with_parsing(issues))
    loops = with_reads_of_loops(with_loops_in_turn(alone))
    whole = with_calls_again(with_reads(with_lost_executors(loops)))
    return causes_first(with_work_on_results(whole))


def with_parsing(issues: Iterable[FoundIssue]) -> list[FoundIssue]:
    """Return issues in the same order, in which parsing a text is a part of computing its rows again.

    A plan says which part of it is computed again, and its scan that a function parses the text for that.
    Where that part only filters text files, their parsing says more clearly what takes the time.
    """
    kept = list(issues)
    for parsing in [issue for issue in kept if _what(issue).startswith(ROWS_OF_TEXT)]:
        _, table = _what(parsing).removeprefix(ROWS_OF_TEXT).split(" of ", 1)
        filters = (
            issue for issue in kept if _computes_again(issue, table, parsing) and _only_filters(issue, table)
        )
        whole = next(filters, None)
        if whole is not None and _most_ms(whole) <= _LITTLE_MORE * _most_ms(parsing):
            kept.remove(parsing)
            evidence = {**whole.evidence, "recomputation.what": _what(parsing)}
            kept[kept.index(whole)] = replace(
                whole, sentence=parsing.sentence, advice=parsing.advice, evidence=evidence
            )
    for parsing in [issue for issue in kept if MAKES in _what(issue)]:
        function, table = _what(parsing).removeprefix(WHAT).split(MAKES, 1)
        whole = next((issue for issue in kept if _computes_again(issue, table, parsing)), None)
        if whole is not None and whole.lost_ms is not None:
            kept.remove(parsing)
            more = f"; each time, {function} parses it"
            kept[kept.index(whole)] = replace(whole, sentence=f"{whole.sentence}{more}")
    return kept


def _computes_again(issue: FoundIssue, table: str, parsing: FoundIssue) -> bool:
    """Return whether an issue is about the rows of one table, as often, and all that parsing them takes."""
    is_of_it = _what(issue).startswith("the same ") and _what(issue).endswith(f" of {table}")
    same = is_of_it and issue.number(_TIMES) == parsing.number(_TIMES) and issue.about == parsing.about
    is_known = issue.lost_ms is not None or parsing.lost_ms is None
    return same and is_known and _most_ms(issue) >= _most_ms(parsing) > 0


def _only_filters(issue: FoundIssue, table: str) -> bool:
    """Return whether the part of plans that is computed again only chooses rows and columns of a table."""
    nodes = _what(issue).removeprefix("the same ").removesuffix(f" of {table}").split(", ")
    return set(nodes) <= {"Filter", "Project"}


def _most_ms(issue: FoundIssue) -> int:
    """Return what an issue costs, or may cost, in ms."""
    return issue.lost_ms or issue.number("shareMs") or 0


def _what(issue: FoundIssue) -> str:
    return str(issue.evidence.get("recomputation.what") or "")


def with_lost_executors(issues: Iterable[FoundIssue]) -> list[FoundIssue]:
    """Return issues, sorted again, in which what executors took with them is a part of having lost them."""
    waiting = list(issues)
    churn = next((issue for issue in waiting if issue.kind == EXECUTOR_CHURN), None)
    of_all = [issue for issue in waiting if churn is not None and issue.about == churn.about]
    again = next((issue for issue in of_all if issue.evidence.get(MADE_AGAIN)), None)
    if churn is None or again is None:
        return waiting
    waiting.remove(again)
    waiting[waiting.index(churn)] = replace(
        churn,
        sentence=f"{churn.sentence}. Besides, {again.sentence}",
        advice=f"{churn.advice} {again.advice}",
        lost_ms=(churn.lost_ms or 0) + (again.lost_ms or 0),
    )
    return sorted(waiting, key=order)


def with_calls_again(issues: Iterable[FoundIssue]) -> list[FoundIssue]:
    """Return issues, sorted again, in which a function that is called too often has all that its calls cost.

    What some executions lose by the same calls was told of each of them.
    """
    waiting = list(issues)
    for whole in [issue for issue in waiting if CALLS in issue.evidence]:
        parts = [issue for issue in waiting if _has_same_calls(issue, whole)]
        calls_ms = whole.number(CALLS_MS) or 0
        waiting = [issue for issue in waiting if issue not in parts and issue is not whole]
        twice = next((f". In {each.about}, {each.sentence}" for each in parts if _is_of_one(each)), "")
        waiting.append(replace(whole, sentence=f"{whole.sentence}{twice}", lost_ms=calls_ms))
    return sorted(waiting, key=order)


def _has_same_calls(issue: FoundIssue, whole: FoundIssue) -> bool:
    """Return whether an issue is about calls that another one counts, in one execution or in some."""
    same = issue.evidence.get(CALLS_OF) == whole.evidence[CALLS_OF]
    return same and CALLS not in issue.evidence and not issue.about.startswith("query ")


def _is_of_one(issue: FoundIssue) -> bool:
    return issue.about.startswith("SQL execution")


def with_work_on_results(issues: Iterable[FoundIssue]) -> list[FoundIssue]:
    """Return issues, sorted again, in which the driver's work on a result is a part of bringing it there.

    Where most of the time in which only the driver works follows that. It may be for something else.
    """
    waiting = list(issues)
    for alone in [issue for issue in waiting if AFTER_RESULT_OF in issue.evidence]:
        place, after_ms = alone.evidence[AFTER_RESULT_OF], alone.number(AFTER_RESULT_MS) or 0
        collect = next((issue for issue in waiting if issue.evidence.get(COLLECTED_AT) == place), None)
        if collect is None or after_ms < _MOST_AFTER_RESULT * (alone.lost_ms or 0):
            continue
        whole_ms = (collect.lost_ms or 0) + after_ms
        waiting.remove(alone)
        waiting[waiting.index(collect)] = replace(
            collect,
            sentence=f"{collect.sentence}; only the driver works for another {duration(after_ms)} after that",
            advice=f"{collect.advice} {alone.advice}",
            lost_ms=whole_ms,
            # Of the driver's time: nobody knows whether all that comes after a result is work on it.
            evidence={**alone.evidence, **collect.evidence, AFTER_RESULT_MS: whole_ms},
        )
    return sorted(waiting, key=order)


def without_held_up_starts(issues: Iterable[FoundIssue], cpu_share: float | None) -> list[FoundIssue]:
    """Return issues without the time before the first stage, if it is no longer than usual for want of a CPU.

    A machine that is too busy for the tasks was so for the start. But tasks may wait for something else than
    a CPU: a start that is far longer than usual is told.

    Args:
        issues: of one application.
        cpu_share: for how much of their time tasks had a CPU at most, 0 to 1; None if unknown.
    """
    return [issue for issue in issues if cpu_share is None or not _is_held_up_start(issue, cpu_share)]


def _is_held_up_start(issue: FoundIssue, cpu_share: float) -> bool:
    start_ms, usual_ms = issue.number(START_MS) or 0, issue.number(USUAL_START_MS) or 0
    others_ms = (issue.lost_ms or 0) - (start_ms - usual_ms)
    longest_ms = min(usual_ms / cpu_share, _LONGEST_START * usual_ms) if cpu_share else 0
    return START_MS in issue.evidence and start_ms + others_ms <= longest_ms


def with_reads(issues: Iterable[FoundIssue]) -> list[FoundIssue]:
    """Return issues, sorted again, in which reading small files is a part of having written them.

    Of those that the application itself has written, nothing remains to be done once it writes fewer.
    """
    by_place: dict[int, FoundIssue] = dict(enumerate(issues))
    reads: dict[int, list[FoundIssue]] = {}
    for reading, read in list(by_place.items()):
        writing = next((key for key, issue in by_place.items() if _wrote(issue, read)), None)
        if writing is not None:
            reads.setdefault(writing, []).append(by_place.pop(reading))
    for writing, of_files in reads.items():
        by_place[writing] = _with_reads(by_place[writing], of_files)
    return sorted(by_place.values(), key=order)


def _wrote(writing: FoundIssue, reading: FoundIssue) -> bool:
    """Return whether an issue is about writing the files that another one is about reading."""
    if writing.kind != SMALL_FILES or not writing.sentence.startswith("writes ") or not reading.lost_ms:
        return False
    wrote, read = writing.number(_EXECUTION), reading.number(_EXECUTION)
    tables = str(writing.evidence.get(TABLES) or "")
    return (
        bool(tables) and _reads(reading, tables) and wrote is not None and read is not None and wrote < read
    )


def _reads(reading: FoundIssue, tables: str) -> bool:
    """Return whether an issue is about reading small files of some tables, or about the many tasks for it."""
    if reading.kind == SMALL_FILES:
        return reading.sentence.startswith("reads ") and reading.evidence.get(TABLES) == tables
    has_too_many = reading.kind == TASK_COUNT and not reading.evidence.get("fewTasks")
    return has_too_many and name_in(reading.about).partition(" into ")[0].endswith(f" of {tables}")


def _with_reads(writing: FoundIssue, reads: list[FoundIssue]) -> FoundIssue:
    read_ms = sum(read.lost_ms or 0 for read in reads)
    executions = {read.number(_EXECUTION) for read in reads}
    where = reads[0].about if len(reads) == 1 else f"{len(executions)} SQL executions"
    if len(reads) > 1 == len(executions):
        where = f"SQL execution {executions.pop()}"
    return replace(
        writing,
        sentence=f"{writing.sentence}. Of the cost, {duration(read_ms)} is for reading these files again, "
        f"in {where}",
        lost_ms=(writing.lost_ms or 0) + read_ms,
    )


def causes_first(issues: Iterable[FoundIssue]) -> list[FoundIssue]:
    """Return issues in the same order, but for those that others lead to.

    What a cache costs that nothing reads is not known, nor what additional rows cost: both would come after
    what their stages lose for want of memory. So would partitions of which no row is needed, which a loop
    reads each time, come after the parsing of all of their files.
    """
    waiting = _loading_first(list(issues))
    ordered: list[FoundIssue] = []
    while waiting:
        issue = waiting.pop(0)
        cause = next((other for other in waiting if _leads_to(other, issue)), None)
        if cause is not None:
            waiting.remove(cause)
            ordered.append(cause)
        ordered.append(issue)
    return ordered


def _loading_first(issues: list[FoundIssue]) -> list[FoundIssue]:
    """Return issues with what each task may load in Python before an RDD that may be computed again.

    What is computed twice takes half of the tasks' time at most: if all take longer, loading may be more.
    """
    loading = [issue for issue in issues if LOADED_BY in issue.evidence]
    loading_ms = sum(issue.number("shareMs") or 0 for issue in loading)
    again = next((issue for issue in issues if _may_be_of_rdd(issue)), None)
    if not loading or again is None or loading_ms <= _FAR_MORE * (again.number("shareMs") or 0):
        return issues
    others = [issue for issue in issues if issue is not loading[0]]
    place = min(issues.index(loading[0]), issues.index(again))
    return [*others[:place], loading[0], *others[place:]]


def _leads_to(cause: FoundIssue, issue: FoundIssue) -> bool:
    """Return whether mending one issue mends the other: a stage lacks memory, files are parsed again."""
    if cause.kind == FULL_SCAN and issue.kind == RECOMPUTATION:
        table, what = cause.evidence.get("scan.table"), _what(issue)
        is_of_files = what.startswith(ROWS_OF_TEXT) and what.endswith(f" of {table}")
        return bool(table) and is_of_files and _most_ms(cause) >= (issue.lost_ms or 0)
    if cause.kind not in _TAKE_MEMORY or issue.kind not in _LACK_MEMORY:
        return False
    stages = str(cause.evidence.get(_TAKE_MEMORY[cause.kind]) or "").split(", ")
    return bool(_stage(issue.about)) and _stage(issue.about) in stages


def _may_be_of_rdd(issue: FoundIssue) -> bool:
    """Return whether it is about stages that read the same RDD, and may do the same with it."""
    return issue.lost_ms is None and _what(issue).startswith(("RDD ", "the RDD "))


def _stage(about: str) -> str:
    """Return the number of the stage that an issue is about, as ``stage 3.0 (count at a.py:1)`` says it."""
    word, _, rest = about.partition(" ")
    return rest.partition(".")[0] if word == "stage" else ""
