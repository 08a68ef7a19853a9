"""The rule about functions of an RDD that make much more data than they read, such as all pairs."""

from __future__ import annotations

from spark_events.api.toolkit.formatting import duration, size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.stages.ended_stage import EndedStage
from spark_events.diagnosis.thresholds import EXPANDED_ROWS, Thresholds

WRITTEN = "expand.writtenBytes"
"""What only its issues have as evidence: how much the tasks write, in bytes."""
_LEAST_WRITTEN = 64 << 10
"""So many bytes the task writes at least that writes most."""
_OF_SOME, _OF_ALL = 4, 10
"""So many times as much as it reads, a task writes that makes many rows; and on average, each task does."""
_MORE_THAN_OTHERS = 10
_ADVICE = (
    "If they make many rows of a few, look which: a group with many members, of which all pairs are made, or "
    "a long list. n members make n² pairs, and n - 1 with the first of them. Remove duplicates and values "
    "that say nothing before the grouping, limit the size of a group, or filter within the function what the "
    "next step drops."
)
_JOINS = ("join at ", "leftOuterJoin at ", "rightOuterJoin at ", "fullOuterJoin at ")
_OF_JOIN = (
    "A join makes a row for each pair of values of a key, so one that is frequent makes most: count them "
    "(countByKey()). If one side is small, bring it to all tasks by sc.broadcast(), and look it up instead: "
    "that shuffles nothing. Or divide a frequent key among tasks: a random number in the key on its "
    "side, and a row for each of these numbers on the other."
)


def is_of_some(stage: EndedStage) -> bool:
    """Return whether only some tasks write so much, and most of the time is theirs."""
    read, written, run = stage.measured.read, stage.measured.spreads["Bytes Written"], stage.measured.run
    some = written.highest >= max(_OF_SOME * read.highest, _MORE_THAN_OTHERS * stage.usual(written))
    return some and 2 * _more_ms(stage) >= run.total


def _more_ms(stage: EndedStage) -> int:
    """Return how much longer the tasks ran than if each were as quick as the median, in ms."""
    run = stage.measured.run
    return max(0, run.total - stage.measured.tasks * stage.usual(run))


def added_data(stage: EndedStage, thresholds: Thresholds) -> Issue | None:
    """Return that tasks write far more for the next shuffle than they read from the one before.

    Both are compressed alike, which what is read from files is not. If only some tasks do, they would take as
    long as the others without these rows; else it is not known how long the tasks would take.
    """
    measured, run = stage.measured, stage.measured.run
    read, written = measured.read, measured.spreads["Bytes Written"]
    of_shuffles = stage.reads_shuffles and not stage.writes_files
    if not stage.python.in_rdd or not of_shuffles or written.highest < _LEAST_WRITTEN:
        return None
    if is_of_some(stage):
        more_ms = _more_ms(stage)
        amounts = (
            f"tasks read at most {size(read.highest)}, the median {size(stage.usual(read))}, and make at "
            f"most {size(written.highest)} of that, the median {size(stage.usual(written))}; they take "
            f"{duration(run.median)} at the median, and up to {duration(run.highest)}"
        )
    elif written.total >= _OF_ALL * read.total:
        amounts = f"tasks read {size(read.total)} in all, and make {size(written.total)} of that"
        more_ms = run.total
    else:
        return None
    by = f"; {stage.rows_from} divides the rows" if stage.rows_from else ""
    return Issue(
        EXPANDED_ROWS,
        EXPANDED_ROWS,
        None,
        None,
        f"Python functions of an RDD make much more data than they read: {amounts}{by}",
        f"{_OF_JOIN} {_ADVICE}" if stage.rows_from.startswith(_JOINS) else _ADVICE,
        evidence={WRITTEN: written.total, "expand.readBytes": read.total},
        share_ms=stage.wall_ms * more_ms // run.total if run.total else 0,
    )
