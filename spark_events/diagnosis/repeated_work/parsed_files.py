"""The rule about text that several SQL executions parse, each anew: files of CSV, or a column of others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import FILES, Node, columns, without_ids
from spark_events.diagnosis.plans.plan_part import MOST_PLACES, named_places
from spark_events.diagnosis.plans.work_in_stage import WorkInStages, above
from spark_events.diagnosis.repeated_work.looped_reads import READ_ONCE, files_of, read_apart
from spark_events.diagnosis.thresholds import RECOMPUTATION

_TEXT = re.compile(r"Scan (csv|json|xml)\b")
_FUNCTIONS = re.compile(
    r"\b(from_json|from_csv|from_xml|from_avro|from_protobuf|parse_json|json_tuple)\(", re.ASCII
)
"""Functions of Spark's own that parse a column, of all of its rows unless something filters before."""
_NEARLY_ALL = 0.9
_MOST_FOLDERS, _MOST_TIMES = 1_000, 1_000
_OFTEN, _MANY = 5, 8
WHAT, MAKES = "what ", " makes of "
"""How what a function makes of the text of a table is told."""
ROWS_OF_TEXT = "the rows of the "
"""How the evidence begins of what is computed again by parsing files."""
_WRITE_IT = (
    "Write it to a table of Parquet once, and read that: of text, all lines are parsed each time, however "
    "few columns are needed. Or cache() the columns that several actions need."
)
_CACHE_WHAT_IT_MAKES = (
    "cache() or persist() what {by} makes of them, before the first of these actions. Or write that to a "
    "table of Parquet once, and read it: a filter on what is parsed has all rows parsed each time."
)
_CACHE_IT = (
    "cache() or persist() what all of these actions need, before the first of them. Or write that to a table "
    "of Parquet once, and read it: of text, all lines are parsed each time, however few columns are needed."
)


class _By(NamedTuple):
    """What parses files: Spark's reader of CSV, JSON or XML, or else a function, a column of them."""

    format: str = ""
    function: str = ""
    column: str = ""


@dataclass(slots=True)
class _Parsed:
    """The files of a path that are parsed; times in ms.

    Attributes:
        by: what parses them.
        table: that is read, or its path.
        files: how many there are, and how large they are, as a sentence says it.
        times: how often SQL executions have parsed them; one that reads them twice counts twice.
        plans: the texts of two scans that differ in their columns, or filters.
        all_ms, longest_ms: how long that took, in all, and the longest time.
        besides_ms: each time in stages that do more which may take long, the first of them: nobody knows how
            much of it parsing took.
        driver_ms: each time, how long no stage of the SQL execution ran: the driver planned and committed.
        places: in the user's code that these were for; the first few.
        filters: the conditions of each time, with their columns, as far as they differ; of the first of them.
    """

    by: _By
    table: str
    files: str
    times: int = 0
    plans: set[str] = field(default_factory=set)
    all_ms: int = 0
    longest_ms: int = 0
    besides_ms: list[int] = field(default_factory=list)
    driver_ms: list[int] = field(default_factory=list)
    places: dict[str, None] = field(default_factory=dict)
    filters: set[frozenset[tuple[str, ...]]] = field(default_factory=set)

    @property
    def is_again(self) -> bool:
        """Whether they are parsed more often than they had to be.

        An application that does the same thing twice may want to.
        """
        return self.times > (1 if len(self.plans) > 1 else 2)

    @property
    def is_often(self) -> bool:
        """Whether they are parsed so often that this is no intention, whatever else is done each time."""
        return self.times >= _OFTEN

    @property
    def may_be_again_ms(self) -> int:
        """How long parsing them again took at most, in stages that do more.

        Each time no longer than the quickest of these stages; but one that is far quicker than most others
        parses only the first lines. Of many, the median says it: the quickest is so by chance.
        """
        quick = sorted(self.besides_ms)
        median_ms = quick[len(quick) // 2] if quick else 0
        usual_ms = next((time_ms for time_ms in quick if time_ms >= median_ms // 2), 0)
        if len(quick) >= _MANY:
            usual_ms = median_ms
        return min(sum(quick[:-1]), usual_ms * (len(quick) - 1)) if quick else 0

    @property
    def rounds_ms(self) -> int:
        """How long the driver took for all SQL executions but one, which one query for all values saves."""
        times_ms = sorted(self.driver_ms)
        if not times_ms or not self.filtered_by:
            return 0
        # A result that is large takes long, however it is asked for.
        return min(sum(times_ms[:-1]), times_ms[len(times_ms) // 2] * (len(times_ms) - 1))

    @property
    def filtered_by(self) -> str:
        """The columns by which files are filtered otherwise each time, as in a loop; empty if not."""
        if len(self.filters) < _OFTEN or len(self.filters) < _NEARLY_ALL * (self.times - 1):
            return ""
        common = frozenset.intersection(*self.filters)
        by = ({name for _, *names in conditions - common for name in names} for conditions in self.filters)
        return ", ".join(sorted(set.intersection(*by)))

    def add(self, time_ms: int, besides_ms: int, place: str) -> None:
        """Count a time that they were parsed."""
        self.times += 1
        self.all_ms += time_ms
        self.longest_ms = max(self.longest_ms, time_ms)
        if besides_ms and len(self.besides_ms) < _MOST_TIMES:
            self.besides_ms.append(besides_ms)
        if place and len(self.places) < MOST_PLACES:
            self.places[place] = None


class ParsedFiles:
    """Finds files of text, or columns of files, that are parsed by one SQL execution after another.

    Whichever columns are needed, all of a line is read, and most of it is parsed. Where a loop filters the
    same files by one value after the other, ``LoopedReads`` tells that.
    """

    def __init__(self) -> None:
        self._parsed: dict[tuple[str, ...], _Parsed] = {}

    def take(self, execution: EndedExecution, place: str, in_loop: bool = False) -> bool:
        """Called with each SQL execution that has ended; returns whether it parses files again.

        Args:
            execution: it.
            place: in the user's code that it is for; empty if unknown.
            in_loop: whether ``LoopedReads`` tells it, or will.
        """
        reads = (node for node in execution.nodes() if node.metrics.get(FILES[0]) and not node.children)
        scans = [(scan, by) for scan in reads if (by := _parsed_by(scan)) is not None]
        if not scans or in_loop:
            return False
        work, is_again = WorkInStages(execution), False
        # Those that one query reads with other filters are told so, all but one of each table.
        of_loop = {id(scan) for of_files in read_apart(execution) for scan, _ in of_files[1:]}
        # Of several scans, the first has the driver's time.
        driver_ms = max(0, execution.lasted_ms - execution.wall_ms(execution.stages))
        for scan, by in scans:
            if id(scan) not in of_loop:
                is_again = self._add(scan, by, work, place, driver_ms) or is_again
                driver_ms = 0
        return is_again

    def issues(self) -> Iterator[Issue]:
        """Yield what each path has cost so far: all times but the longest."""
        for key, parsed in self._parsed.items():
            if parsed.is_again:
                yield _issue(" ".join(key), parsed)

    def _add(self, scan: Node, by: _By, work: WorkInStages, place: str, driver_ms: int) -> bool:
        location = scan.metadata.get("Location") or scan.table()
        of_partitions = without_ids(scan.metadata.get("PartitionFilters", ""))
        key = *by, location, of_partitions, *(str(scan.metrics.get(name)) for name in FILES)
        if not scan.measured_in or (key not in self._parsed and len(self._parsed) >= _MOST_FOLDERS):
            return False
        parsed = self._parsed.setdefault(key, _Parsed(by, scan.table(), files_of(scan)))
        # Nothing where the stage does more that may take long.
        time = work.time(scan)
        time_ms = time.time_ms if time.is_known and not by.function else 0
        parsed.add(time_ms, 0 if time_ms else work.freed_ms(scan.stages), place)
        if len(parsed.driver_ms) < _MOST_TIMES:
            parsed.driver_ms.append(driver_ms)
        if len(parsed.plans) < 2:
            parsed.plans.add(without_ids(scan.text))
        if len(parsed.filters) < _MOST_TIMES and (conditions := _conditions(scan)):
            parsed.filters.add(conditions)
        return parsed.is_again


def _conditions(scan: Node) -> frozenset[tuple[str, ...]]:
    """Return what rows of a scan have to be before they are shuffled, each with the columns it is about."""
    parts = (part for node in above(scan) if node.name == "Filter" for part in node.text.split(" AND "))
    return frozenset((without_ids(part.strip("() ")), *columns(part)) for part in parts)


def _parsed_by(scan: Node) -> _By | None:
    """Return what parses the files of a scan, or a column of nearly all rows in its stage; else None."""
    if match := _TEXT.match(scan.name):
        return _By(match[1].upper())
    for node in above(scan):
        if match := _FUNCTIONS.search(node.text):
            rows, of = node.children[0].rows or 0, columns(node.text[match.end() :])[:1]
            parses_all = rows >= _NEARLY_ALL * (scan.rows or 0) > 0
            # Behind a long schema, the text may be cut off before the column.
            return _By(function=match[1], column=of[0]) if parses_all and of else None
    return None


def _issue(key: str, parsed: _Parsed) -> Issue:
    places = f", for {named_places(parsed.places)}" if parsed.places else ""
    lost_ms, may_be_lost_ms = parsed.all_ms - parsed.longest_ms, parsed.may_be_again_ms
    is_share = parsed.is_often and may_be_lost_ms > 2 * lost_ms
    form, function, _ = parsed.by
    rounds_ms = 0 if function else parsed.rounds_ms
    if function:
        what, parsed_by, of = f"{WHAT}{function}{MAKES}{parsed.table}", f" by {function}", parsed.table
        advice = _CACHE_WHAT_IT_MAKES.format(by=function)
    else:
        what, parsed_by, of = f"{ROWS_OF_TEXT}{form} of {parsed.table}", "", f"{form} of {parsed.table}"
        advice = _CACHE_IT if parsed.is_often else _WRITE_IT
    filtered = ""
    if not function and (by := parsed.filtered_by):
        filtered = f", mostly with another filter on {by} each time"
        advice = f"{READ_ONCE.format(job='query', by=by)} {advice}"
    return Issue(
        RECOMPUTATION,
        f"{RECOMPUTATION} text {key}",
        None if is_share else lost_ms + rounds_ms,
        None,
        f"{of} ({parsed.files}) is parsed{parsed_by} {parsed.times:,} times{filtered}{places}",
        advice,
        evidence={
            "recomputation.times": parsed.times,
            "recomputation.cached": False,
            "recomputation.what": what,
        },
        share_ms=may_be_lost_ms + rounds_ms if is_share else None,
    )
