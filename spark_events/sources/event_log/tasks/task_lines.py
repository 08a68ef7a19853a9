"""The form in which Spark writes the lines of tasks, and where in them things stand.

What all lines of a stage have in common, their head, is looked up as it stands; the metrics are looked for
where those of the line before were.
"""

from __future__ import annotations

import re
from typing import NamedTuple

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
    + rb'(?(1)"Task Type":"(Shuffle)?\w+","Task End Reason":\{"Reason":"Success"\},)"Task Info":\{"Task ID":'
)
# A number with more digits is none of Spark's, and beyond what can be computed with.
_INFO = (
    rb'\d+,"Index":(\d{1,18}),"Attempt":\d+,(?:"Partition ID":\d+,)?'
    rb'"Launch Time":(\d{1,18}),"Executor ID":"([^"\\]*)"'
)
match_info = re.compile(_INFO).match
"""Matches what follows the head: the task's index, its launch in ms since the epoch, and its executor."""
match_details = re.compile(
    _INFO
    + rb',"Host":"([^"\\]*)","Locality":"\w*","Speculative":(true|false),"Getting Result Time":(\d{1,18}),'
    + rb'"Finish Time":(\d{1,18}),'
).match
"""Matches the same, then the host, whether it is a speculative copy, and when it was fetched and finished."""
_MOST_HEADS = 1_000
_DIGITS_MORE = 128
"""By how much the metrics of two lines differ in length: in the number of digits."""


class Head(NamedTuple):
    """What the lines of a stage attempt begin with, up to and including ``TASK_ID``.

    Attributes:
        text: these bytes.
        length: how many they are.
        attempt: those that name the attempt.
        ended: whether the lines are of tasks that have ended.
        writes_shuffle: whether the tasks write shuffle output; only known if they have ended.
    """

    text: bytes
    length: int
    attempt: bytes
    ended: bool
    writes_shuffle: bool


class TaskLines:
    """What has been learned from the lines so far about those to come.

    Attributes:
        behind: how far from its end at most the metrics of the next TaskEnd are looked for, in bytes.
    """

    __slots__ = ("_heads", "behind")

    def __init__(self) -> None:
        self._heads: dict[bytes, Head] = {}
        self.behind = 0

    def head_of(self, line: bytes) -> Head | None:
        """Return the head of a line, if it begins in the form of Spark; else None."""
        text = line[: line.find(TASK_ID) + len(TASK_ID)]
        return self._heads.get(text) or self._learn_head(text)

    def learn_metrics(self, line: bytes) -> int:
        """Return where the metrics of a TaskEnd begin, and remember it for the next; -1 if it has none."""
        begin = line.rfind(METRICS_KEY)
        if begin >= 0:
            self.behind = len(line) - begin + _DIGITS_MORE
        return begin

    def _learn_head(self, text: bytes) -> Head | None:
        match = _HEAD.fullmatch(text)
        if match is None:
            return None
        if len(self._heads) >= _MOST_HEADS:
            self._heads.clear()
        head = Head(text, len(text), match[2], match[1] is not None, match[3] is not None)
        self._heads[text] = head
        return head
