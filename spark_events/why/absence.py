"""What would have to be gone, so that a run would take less time: the words for each issue."""

from __future__ import annotations

from spark_events.diagnosis import thresholds as kinds
from spark_events.diagnosis.stages.added_data import WRITTEN
from spark_events.diagnosis.times.program_loops import LOOP_AT
from spark_events.why.found_issue import SHARES, FoundIssue
from spark_events.why.places import in_words, with_ends_of_paths

ABSENCES = {
    kinds.SKEW: "{uneven} {about}",
    kinds.STRAGGLER: "the late task of {about}",
    kinds.SLOW_NODE: "the slow host {host}",
    kinds.GC: "garbage collection in {about}",
    kinds.IDLE_CORES: "the time in which only the driver works",
    kinds.TASK_COUNT: "too many tasks in {about}",
    kinds.SMALL_FILES: "the small files of {about}",
    kinds.RETRIES: "the failed attempts of {about}",
    kinds.PYTHON: "Python functions{functions} of {about}",
    kinds.EXPLODING_JOIN: "the rows that a join adds in {about}",
    kinds.NO_DUPLICATES: "looking for duplicates in {about}",
    kinds.LATE_FILTER: "the duplicates of rows that a filter drops in {about}",
    kinds.NEEDLESS_SHUFFLE: "moving rows for nothing in {about}",
    kinds.LONG_CASE: "the long CASE of {about}",
    kinds.COMPRESSION: "compressing files as much as can be in {about}",
    kinds.SLOW_PATTERN: "the regular expressions of {about}",
    kinds.CROSS_JOIN: "making all pairs of rows in {about}",
    kinds.MISSING_BROADCAST: "the shuffle of a large side in {about}",
    kinds.LARGE_BROADCAST: "the large broadcast of {about}",
    kinds.FULL_SCAN: "the scan of all partitions in {about}",
    kinds.WINDOW: "the window that one task computes in {about}",
    kinds.RECOMPUTATION: "computing {what} again",
    kinds.COLLECT: "bringing a large result to the driver",
    kinds.REWRITE: "writing unchanged rows again in {about}",
    kinds.EXECUTOR_CHURN: "the loss of executors",
    kinds.SMALL_JOBS: "the loop of small jobs of {loop}",
    kinds.SMALL_BATCHES: "such small micro-batches",
    kinds.FOREACH_BATCH: "the code in foreachBatch",
    kinds.REGRESSION: "what made {about} slower than in its last runs",
}
"""What would have to be gone, by kind of issue; those that cost no time have none."""
_EXECUTOR = "executorId"
"""What a slow host has as evidence if only one of its executors is slow."""
SPECIAL = {
    "repeats": "making again what had been written and was gone",
    "window.frameRows": "the sliding frames of the window in {about}",
    "window.frame": "the frames of the window in {about}",
    "task.cpus": "the cores that tasks of SQL hold and do not use",
    "cached.executorId": "the wait for the executor that has the cached partitions",
    "collect.place": "bringing the result of {result} to the driver",
    "pivot.column": "the query that finds {what} for pivot()",
    "listing.path": "listing the files of {path} again",
    "join.condition": "the comparisons of the join in {about}",
    "schema.format": "reading files only for their schema",
    "partitions": "fetching partitions one by one",
    "source.offsetsMs": "the time in which its source says what is new",
}
"""By what only some issues of a kind have as evidence."""
_STARTS = "starting Python workers, or loading functions, again for each task of {about}"


def share_of(issue: FoundIssue) -> str:
    """Return what takes time that may be lost as a whole, for issues of the kinds of ``SHARES``."""
    if WRITTEN in issue.evidence:
        return f"may go to the additional data that functions make in {in_words(issue.about)}"
    if issue.kind == kinds.CROSS_JOIN and (array := issue.evidence.get("array.column")):
        return (
            f"may go to pairing the elements of {array}, an array, with each other in {in_words(issue.about)}"
        )
    if column := issue.evidence.get("scan.column"):
        return f"may go to reading rows that a filter on {column}, which it converts, drops"
    return SHARES[issue.kind].format(what=what_of(issue))


def absence_of(issue: FoundIssue) -> str:
    """Return what would have to be gone."""
    special = (text for name, text in SPECIAL.items() if name in issue.evidence)
    if issue.kind == kinds.SLOW_NODE and _EXECUTOR in issue.evidence:
        return f"the slow executor {issue.evidence[_EXECUTOR]} of {issue.evidence.get('host')}"
    starts = issue.kind == kinds.PYTHON and starts_again(issue)
    keys = issue.evidence.get("shuffle.keys")
    absence = (_STARTS if starts else next(special, ABSENCES[issue.kind])).format(
        about=in_words(issue.about),
        functions=functions_of(issue),
        host=issue.evidence.get("host"),
        what=what_of(issue),
        path=issue.evidence.get("listing.path"),
        loop=with_ends_of_paths(str(issue.evidence.get(LOOP_AT) or "one place")),
        result=with_ends_of_paths(str(issue.evidence.get("collect.place"))),
        uneven=f"the uneven distribution of {keys} in" if keys else "the uneven data of",
    )
    if issue.kind == kinds.SMALL_FILES and issue.sentence.startswith("reads "):
        several = issue.about[:1].isdigit()
        return f"the small files that {in_words(issue.about)} {'read' if several else 'reads'}"
    return absence.replace("too many", "too few", 1) if issue.evidence.get("fewTasks") else absence


def starts_again(issue: FoundIssue) -> bool:
    """Return whether it is about Python workers that each task starts, or what these load."""
    return "pythonStartMs" in issue.evidence


def what_of(issue: FoundIssue) -> str:
    """Return what an issue says is computed again."""
    return str(issue.evidence.get("recomputation.what") or "the same thing")


def functions_of(issue: FoundIssue) -> str:
    """Return which functions an issue is about, in parentheses; empty if nobody knows them."""
    functions, rows = issue.evidence.get("python.functions"), issue.number("python.batchRows")
    if not functions:
        return ""
    return f" ({functions})" if rows is None else f" ({functions}, in batches of {rows} rows)"
