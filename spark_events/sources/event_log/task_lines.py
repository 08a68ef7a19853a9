"""The form in which Spark writes the lines of tasks, and where in them things stand.

Most of a log are such lines, so what is done for each of them decides how fast a log is read. What all lines
of a stage have in common, their head, is looked up as it stands; the metrics are looked for where those of
the line before were.
"""

from __future__ import annotations

import re

TASK_START = b'{"Event":"SparkListenerTaskStart",'
TASK_END = b'{"Event":"SparkListenerTaskEnd",'
TASK_ID = b'"Task ID":'
METRICS_KEY = b'"Task Metrics":{'
SHUFFLE_KEY = b'"Shuffle Write Metrics":{"Shuffle Bytes Written":'
CLOSING = ord("}")
# The form in which Spark has written them since 1.2, with later additions in parentheses. A record that looks
# different, such as that of a failed task, is parsed as a whole.
_HEAD = re.compile(
    b"(?:%b|(%b))" % (re.escape(TASK_START), re.escape(TASK_END))
    + rb'"Stage ID":(\d+,"Stage Attempt ID":\d+),'
    + rb'(?(1)"Task Type":"(Shuffle)?\w+","Task End Reason":\{"Reason":"Success"\},)"Task Info":\{'
)
_INFO = (
    rb'"Task ID":\d+,"Index":(\d+),"Attempt":\d+,(?:"Partition ID":\d+,)?'
    rb'"Launch Time":(\d+),"Executor ID":"([^"\\]*)"'
)
match_info = re.compile(_INFO).match
"""Matches what follows the head: the task's index, its launch in ms since the epoch, and its executor."""
match_details = re.compile(
    _INFO
    + rb',"Host":"([^"\\]*)","Locality":"\w*","Speculative":(true|false),"Getting Result Time":(\d+),'
    + rb'"Finish Time":(\d+),'
).match
"""Matches the same, then the host, whether it is a speculative copy, and when it was fetched and finished."""
_MOST_HEADS = 1_000
_DIGITS_MORE = 128
"""By how much the metrics of two lines differ in length: in the number of digits."""


Head = tuple[bytes, bool]
"""The bytes that name the stage attempt, and whether it is the end of a task that writes shuffle output."""


class TaskLines:
    """What has been learned from the lines so far about those to come.

    Attributes:
        heads: what lines begin with, up to ``TASK_ID``, in the form of Spark.
        behind: how far from its end at most the metrics of the next TaskEnd are looked for, in bytes.
    """

    __slots__ = ("behind", "heads")

    def __init__(self) -> None:
        self.heads: dict[bytes, Head] = {}
        self.behind = 0

    def learn_head(self, line: bytes, end: int) -> Head | None:
        """Return the head of a line that begins in the form of Spark, and remember it; else None.

        Args:
            line: the line.
            end: where its ``TASK_ID`` begins.
        """
        match = _HEAD.fullmatch(line, 0, max(end, 0))
        if match is None:
            return None
        if len(self.heads) >= _MOST_HEADS:
            self.heads.clear()
        head = self.heads[line[:end]] = (match[2], match[3] is not None)
        return head

    def learn_metrics(self, line: bytes) -> int:
        """Return where the metrics of a TaskEnd begin, and remember it for the next; -1 if it has none."""
        begin = line.rfind(METRICS_KEY)
        if begin >= 0:
            self.behind = len(line) - begin + _DIGITS_MORE
        return begin
