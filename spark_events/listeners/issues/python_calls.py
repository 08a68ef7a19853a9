"""What its plan says of the Python functions of a stage: which they are, and what they take for each row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from spark_events.api.toolkit.formatting import micros, size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.node import EXISTING_RDD, IN_PYTHON, ROWS, Node, columns
from spark_events.diagnosis.stages.python_time import (
    FASTER_FUNCTIONS,
    OF_OBJECTS,
    OF_RDD,
    SMALL_BATCH,
    WITH_ROWS,
)
from spark_events.diagnosis.thresholds import PYTHON

_PERCENT = re.compile(r"^\d+%", re.ASCII)
_CALL, _CALLED = re.compile(r"([A-Za-z_<][\w<>]*)\(", re.ASCII), re.compile(r"#\d", re.ASCII)
_IN_BATCHES = re.compile(r"^ArrowEvalPython .*\], (\d+)$", re.ASCII | re.DOTALL)
_SERIES, _ITERATORS = ("200", "250"), ("204", "251")
"""``PythonEvalType`` of pandas and Arrow functions that take a batch, and an iterator of batches; others are
called row by row, even where Arrow brings the rows."""
WHOLE_GROUPS = ("InPandas", "InArrow", "InPandasWithState")
"""How the names of nodes end whose functions take groups or batches of rows."""
_BY_ROWS = ("ArrowEvalPython", "BatchEvalPython")
"""Nodes out of which a row comes for each that goes into the functions."""
_FED_IN_BATCHES = ("ArrowEvalPython", "MapInPandas", "MapInArrow", "PythonMapInArrow")
"""Nodes whose rows go to Python in batches of ``spark.sql.execution.arrow.maxRecordsPerBatch``."""
_LEAST_MS = 12_000
"""If each core spends less time in Python, much of it may be for what Python imports at first."""
_MAY_PREPARE_US, _LONG_FOR_A_ROW_US = 200, 500
"""To compute a value mostly takes less than the former, and to unpack a row less than the latter."""
_FEWER_ROWS = "Spark's own functions help where there are any, and fewer rows: filter before it."
_ONCE_A_TASK = (
    "If it prepares something for each batch (a connection, a model), let it take an iterator of batches "
    f"(Iterator[pd.Series]), and do that once a task. {_FEWER_ROWS}"
)
_BY_COLUMNS = (
    "If it goes through rows one by one (a loop, iterrows(), itertuples(), apply(axis=1)), let pandas or "
    "NumPy compute with whole columns."
)
_IN_GROUPS = f"It takes whole groups or batches of rows. {_BY_COLUMNS} Or give it fewer rows and columns."
_WHOLE_GROUP = (
    f"It takes whole groups. {_BY_COLUMNS} Where groups are small, pandas takes a millisecond or more for "
    "each, however few rows it has: window functions (lag, row_number, a sum in the order of time) make "
    "differences, sessions, ranks and running totals without a call; or group by fewer values, such as "
    "pmod(hash(…), 64), and let it divide them (DataFrame.groupby in pandas)."
)
_OF_GROUPS = ("FlatMapGroupsInPandas", "FlatMapGroupsInArrow")
_LEAST_GROUPS, _FEW_ROWS_EACH, _LONG_FOR_A_GROUP_US = 1_000, 1_000, 300
"""So many rows that come out, each of so few that go in, for each of which Python takes so long."""
_SMALL_GROUPS = (
    "If it returns a row for each group, its groups have {each:,} rows on average, and pandas takes a "
    "millisecond or more for each call, however few rows it gets. Spark's own aggregates (max, sum, "
    "count_if, max_by) need no call. Or group by fewer values, such as pmod(hash(…), 64), so that it gets "
    f"many groups at once, and let it divide them (DataFrame.groupby in pandas). {_BY_COLUMNS}"
)
_SENT = "data sent to Python workers"
_WIDE_BYTES, _MANY_BYTES, _MANY_COLUMNS = 400, 32 << 20, 8
_FEWER_COLUMNS = (
    "Pass to the function the columns that it needs alone, and not a struct of all: each value is packed for "
    "Python and unpacked there."
)
_ONCE_A_WORKER = (
    "So long for a row, a function mostly prepares something at each call (reads a file, opens a connection, "
    "parses, builds a table) or waits: do that once for each Python worker, in a variable outside of the "
    "function."
)
_UNPACKS = f"Python, which unpacks the rows of a DataFrame that is made of Python objects{WITH_ROWS}"
_UNPACKED_ONCE = (
    "It does so whenever the DataFrame is read, in a streaming query in each micro-batch: write it to a "
    "table and read that, or cache() it, before a query starts. createDataFrame() of a pandas DataFrame "
    "needs no Python in tasks, with spark.sql.execution.arrow.pyspark.enabled=true. If functions of an RDD "
    "make the objects (sc.parallelize(…).map(…).toDF()), the time is theirs, too."
)
_SMALL_BATCHES = (
    "What is done once for each batch is done for every {rows} rows: by the function, if it loads a model, "
    "say, and by Spark and pandas, which take about a millisecond. Where that is much of the time, remove "
    "spark.sql.execution.arrow.maxRecordsPerBatch={rows} (10,000 is the default)."
)


def of_functions(issue: Issue, nodes: Sequence[Node]) -> Issue:
    """Return an issue of Python functions with what the nodes of the stage's plan say about them."""
    if OF_OBJECTS in issue.evidence:
        return _of_objects(issue, nodes)
    in_python = [node for node in nodes if IN_PYTHON in node.metrics]
    functions = list(dict.fromkeys(name for node in in_python for name in _called(node.text)))[:3]
    if not functions:
        return issue
    issue = _without_nested(issue, in_python)
    named = ", ".join(functions)
    evidence = {**issue.evidence, "python.functions": named}
    issue = replace(issue, sentence=f"{issue.sentence}: {named}", evidence=evidence)
    if issue.cause != PYTHON:
        return issue
    if any(node.name.endswith(WHOLE_GROUPS) for node in nodes):  # nothing of Spark's own does the same
        advice = _WHOLE_GROUP if all(node.name in _OF_GROUPS for node in in_python) else _IN_GROUPS
        issue = replace(issue, lost_ms=None, share_ms=issue.lost_ms, advice=advice)
        issue = _of_groups(issue, in_python)
    elif advice := _of_batches(in_python):
        issue = replace(issue, advice=issue.advice.replace(FASTER_FUNCTIONS, advice))
    return _of_small_batches(_of_wide_rows(_for_each_row(issue, in_python), in_python), in_python)


def _without_nested(issue: Issue, in_python: Sequence[Node]) -> Issue:
    """Count no time twice: the worker of a node waits for those of nodes below it, which a stage adds up."""
    time_ms, run_ms = issue.evidence.get("pythonTimeMs"), issue.evidence.get("runTimeMs")
    own_ms = sum(node.metrics[IN_PYTHON] for node in in_python)
    of_stage = len(in_python) > 1 and len(frozenset().union(*(node.measured_in for node in in_python))) == 1
    if not of_stage or not isinstance(time_ms, int) or not isinstance(run_ms, int) or own_ms >= time_ms:
        return issue
    share = own_ms / max(1, run_ms)
    return replace(
        issue,
        lost_ms=None if issue.lost_ms is None else issue.lost_ms * own_ms // time_ms,
        share_ms=None if issue.share_ms is None else issue.share_ms * own_ms // time_ms,
        sentence=_PERCENT.sub(f"{share:.0%}", issue.sentence, count=1),
        evidence={**issue.evidence, "pythonTimeMs": own_ms, "pythonShare": round(share, 4)},
    )


def _of_objects(issue: Issue, nodes: Iterable[Node]) -> Issue:
    """Say that Python unpacks objects, unless it takes so long for a row that functions of the user's do."""
    rows = max((node.rows or 0 for node in nodes if node.name.startswith(EXISTING_RDD)), default=0)
    share_ms, all_ms = issue.share_ms or 0, issue.evidence.get("pythonTimeMs")
    at_once = all_ms // share_ms if isinstance(all_ms, int) and share_ms else 1
    if rows and share_ms * at_once * 1_000 < _LONG_FOR_A_ROW_US * rows:
        sentence = issue.sentence.replace(OF_RDD, _UNPACKS)
        return replace(issue, sentence=sentence, advice=_UNPACKED_ONCE)
    evidence = {name: value for name, value in issue.evidence.items() if name != OF_OBJECTS}
    return replace(issue, evidence=evidence)


def _of_wide_rows(issue: Issue, in_python: Iterable[Node]) -> Issue:
    """Say that much is sent to Python for each row, where Spark counts it, of many columns."""
    wide = [node for node in in_python if node.name in _BY_ROWS and len(_read(node)) >= _MANY_COLUMNS]
    sent = [(node.metrics.get(_SENT, 0), node.rows or 0) for node in wide]
    total, rows = max(sent, default=(0, 0))
    if not rows or total < _WIDE_BYTES * rows or total < _MANY_BYTES:
        return issue
    return replace(
        issue,
        sentence=f"{issue.sentence}; {size(total / rows)} are sent to Python for each row",
        advice=f"{_FEWER_COLUMNS} {issue.advice}",
    )


def _for_each_row(issue: Issue, in_python: Sequence[Node]) -> Issue:
    """Say what functions take for a row, if all the time is one node's, and all its rows this stage's."""
    node, time_ms = in_python[0], issue.evidence.get("pythonTimeMs")
    is_all = len(in_python) == 1 and node.name in _BY_ROWS and len(node.measured_in) == 1
    if not is_all or not node.rows or not isinstance(time_ms, int) or (issue.lost_ms or 0) < _LEAST_MS:
        return issue
    each_us = time_ms * 1_000 / node.rows
    sentence = f"{issue.sentence}, {micros(each_us)} for each of {node.rows:,} rows"
    if each_us < _MAY_PREPARE_US or _of_batches(in_python):
        return replace(issue, sentence=sentence)
    return replace(issue, sentence=sentence, advice=f"{_ONCE_A_WORKER} {issue.advice}")


def _of_groups(issue: Issue, in_python: Sequence[Node]) -> Issue:
    """Say what a function takes for a row that it gets, or for a group of few rows, if these are known.

    It seems to get groups of few rows if it returns a row for each, or a few.
    """
    node, time_ms = in_python[0], issue.evidence.get("pythonTimeMs")
    rows, made = node.children[0].rows if len(node.children) == 1 else None, node.metrics.get(ROWS) or 0
    if len(in_python) > 1 or not rows or not isinstance(time_ms, int):
        return issue
    are_small = (
        node.name in _OF_GROUPS and made >= _LEAST_GROUPS and 2 * made <= rows <= _FEW_ROWS_EACH * made
    )
    if are_small and (each_us := time_ms * 1_000 / made) >= _LONG_FOR_A_GROUP_US:
        return replace(
            issue,
            sentence=f"{issue.sentence}, which makes {made:,} rows of {rows:,}, each in {micros(each_us)}",
            advice=_SMALL_GROUPS.format(each=round(rows / made)),
        )
    if len(node.measured_in) > 1 or (issue.share_ms or 0) < _LEAST_MS:
        return issue
    each_us = time_ms * 1_000 / rows
    return replace(
        issue, sentence=f"{issue.sentence}, {micros(each_us)} for each of the {rows:,} rows it gets"
    )


def _read(node: Node) -> list[str]:
    """Return the columns that functions get, as far as Spark names them."""
    return columns(node.text.partition("], [")[0])


def _of_small_batches(issue: Issue, in_python: Iterable[Node]) -> Issue:
    """Say that rows come in batches far smaller than they do by default; or nothing, if they do not."""
    rows = issue.evidence.get(SMALL_BATCH)
    if rows is None:
        return issue
    if not all(node.name in _FED_IN_BATCHES for node in in_python):
        evidence = {name: value for name, value in issue.evidence.items() if name != SMALL_BATCH}
        return replace(issue, evidence=evidence)
    return replace(
        issue,
        sentence=f"{issue.sentence}, in batches of {rows} at most",
        advice=f"{_SMALL_BATCHES.format(rows=rows)} {issue.advice}",
    )


def _called(text: str) -> Iterator[str]:
    """Yield the functions that a node's text calls, such as ``f`` of ``f(cast(id#0L as double))#1``.

    Those behind an apostrophe are Spark's own, by which rows are grouped.
    """
    for call in _CALL.finditer(text):
        if text[: call.start()].endswith("'"):
            continue
        depth = 0
        for place in range(call.end() - 1, len(text)):
            depth += (text[place] == "(") - (text[place] == ")")
            if not depth:
                if _CALLED.match(text, place + 1):
                    yield call[1]
                break


def _of_batches(in_python: Iterable[Node]) -> str:
    """Return the advice for functions that all take batches already; empty if one is called row by row."""
    kinds = [match[1] if (match := _IN_BATCHES.match(node.text)) else "" for node in in_python]
    if not kinds or not all(kind in _SERIES + _ITERATORS for kind in kinds):
        return ""
    return _ONCE_A_TASK if any(kind in _SERIES for kind in kinds) else _FEWER_ROWS
