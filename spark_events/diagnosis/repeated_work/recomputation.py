"""The rules about what an application computes again and again, and about what it caches and never reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from hashlib import sha256
from typing import NamedTuple

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.column_meanings import ColumnMeanings
from spark_events.diagnosis.plans.execution import EndedExecution, fills_cache
from spark_events.diagnosis.plans.node import (
    IN_MEMORY,
    OF_PROGRAM,
    REUSED,
    Node,
    outputs,
    without_ids,
)
from spark_events.diagnosis.plans.plan_digests import Digest, digest_of, digest_of_work
from spark_events.diagnosis.plans.plan_part import MOST_PASSES, MOST_PLACES, Pass, PlanPart
from spark_events.diagnosis.plans.shared_work import only_hands_on
from spark_events.diagnosis.plans.work_in_stage import WorkInStages
from spark_events.diagnosis.repeated_work.called_twice import calls_in
from spark_events.diagnosis.repeated_work.counts import CountedRows
from spark_events.diagnosis.repeated_work.growing_plans import GrowingPlans
from spark_events.diagnosis.repeated_work.looped_reads import LoopedReads
from spark_events.diagnosis.repeated_work.overlaps import frames_of, groups_of
from spark_events.diagnosis.repeated_work.parsed_files import ParsedFiles
from spark_events.diagnosis.repeated_work.part_issues import computed_again, never_read
from spark_events.diagnosis.repeated_work.released_caches import ReleasedCaches

_MOST_PARTS = 5_000
_MOST_GROUPED, _MOST_TOLD = 100, 20
_KIND = re.compile(r"^(?:BatchScan|\w+(?: \w+)?)", re.ASCII)
"""How the name of a scan begins, before the table that it reads."""
_INFERS, _OF_TEXT, OF_COLUMNS = "DeserializeToObject", ("Scan text", "Scan json", "Scan csv"), "schema"
"""The only node above a scan of lines that looks for their columns; and what it finds."""
_WRITES = ("Execute", "Write", "AppendData", "Overwrite", "ReplaceData", "CreateTable", "AtomicCreate")
_NOT_KEPT = (*REUSED, "Subquery", *_WRITES)
"""How the names of nodes begin that no cache could keep: what others compute, and writes."""


class _Where(NamedTuple):
    """Where a part of a plan stands; ``caches`` has the digests of scans of caches, by their ids."""

    execution: EndedExecution
    work: WorkInStages
    place: str
    whole: str
    caches: dict[int, Digest]
    cached: bool = False


class Recomputation:
    """Finds parts of plans that are computed more than once, though a cache could keep them.

    A part is the same if its nodes are, and if it reads as many files and rows: of a table that has grown,
    something else is computed.

    Args:
        with_other_rows: how the names of nodes begin that have other rows each time, however alike they look.
        growing: knows of loops whose plans grow; it takes the executions elsewhere, before this does.
    """

    def __init__(
        self, with_other_rows: Sequence[str] = OF_PROGRAM, growing: GrowingPlans | None = None
    ) -> None:
        self._not_kept = (*_NOT_KEPT, *with_other_rows)
        self._with_other_rows = tuple(with_other_rows)
        self._fills: Counter[str] = Counter()
        self._parts: dict[str, PlanPart] = {}
        self._again: dict[str, PlanPart] = {}
        self._causes: dict[str, str] = {}
        self._leaders: dict[str, str] = {}
        self._counted = CountedRows()
        self._looped_reads = LoopedReads()
        self._parsed_files = ParsedFiles()
        self._released = ReleasedCaches()
        # The RDDs of caches that were released before they were needed.
        self._missed: set[int] = set()
        self._growing = growing or GrowingPlans()
        self._unknown_reads = False
        self._executions = 0

    def take(self, execution: EndedExecution, place: str) -> bool:
        """Called with each SQL execution that has ended; returns whether ``issues`` has something new.

        Args:
            execution: it.
            place: in the user's code that it is for; empty if unknown.
        """
        is_new = self._looped_reads.take(execution, place)
        in_loop = self._looped_reads.holds(execution, place)
        is_new = self._parsed_files.take(execution, place, in_loop) or is_new
        if not execution.plans:
            self.read_elsewhere()
        digests, are_again = self.take_parts(execution, place, other_columns=True)
        for plan, of_plan in zip(execution.plans, digests, strict=True):
            is_new = self._counted.take(execution, plan, of_plan, place) or is_new
        return is_new or are_again

    def take_parts(
        self, execution: EndedExecution, place: str, other_columns: bool = False
    ) -> tuple[list[dict[int, str]], bool]:
        """Take what ``again`` needs of an execution; the arguments are those of ``take``.

        Args:
            other_columns: whether parts that do the same are also looked for where they need other columns.

        Returns:
            The digests of the nodes of each plan, and whether ``again`` has something new.
        """
        self._executions += 1
        parts: list[PlanPart] = []
        work = WorkInStages(execution)
        digests = []
        for plan in execution.plans:
            whole = sha256(plan.signature().encode(errors="replace")).hexdigest()[:16]
            where = _Where(execution, work, place, whole, {})
            digests.append(self._take(plan, where, parts))
            if other_columns:
                self._take_work(plan, where, parts)
        again = {part.digest: part for part in parts if part.is_again}
        self._again.update(again)
        return digests, bool(again)

    def issues(self) -> Iterator[Issue]:
        """Yield what was computed more than once so far, however little that cost."""
        yield from self.again()
        yield from self._counted.issues()
        yield from self._looped_reads.issues()
        yield from self._parsed_files.issues()

    def again(self, executions: int = 1) -> Iterator[Issue]:
        """Yield which parts of plans were computed more than once so far.

        Args:
            executions: in so many SQL executions at least.
        """
        again = (part for part in self._again.values() if part.is_again and part.executions >= executions)
        costliest = sorted(again, key=lambda part: (-part.lost_ms, -part.size))
        groups = groups_of(costliest[:_MOST_GROUPED], self._causes)
        grown = self._growing.passes
        for group in frames_of(groups, self._leaders)[:_MOST_TOLD]:
            yield computed_again(group, grown)

    def forget_single(self, stages: Set[int]) -> None:
        """Forget what was computed once, and not in these stages: of a stream, nearly all is."""
        self._parts = {
            digest: part
            for digest, part in self._parts.items()
            if part.times > 1 or not stages.isdisjoint(part.last)
        }

    def read_elsewhere(self) -> None:
        """Called when something that is not taken may have read a cache; nobody knows which."""
        self._unknown_reads = True

    def unpersisted(self, rdd: int) -> None:
        """Called when Spark no longer keeps an RDD, such as that of a cache."""
        self._released.unpersisted(rdd)

    def never_read(self) -> Iterator[Issue]:
        """Yield caches that only the SQL execution has read that filled them, at the application's end.

        Of one that was released too early, it is told that it would have been read.
        """
        if self._unknown_reads:
            return
        for part in self._parts.values():
            if part.cached and part.times == part.scans == 1 and part.caches.isdisjoint(self._missed):
                yield never_read(part)

    def _take(self, plan: Node, where: _Where, parts: list[PlanPart]) -> dict[int, str]:
        """Take a plan, node after node, add what was computed to the parts, and return all digests."""
        digests: dict[int, Digest] = {}
        columns = ColumnMeanings()
        for node, cached, computed in _bottom_up(plan):
            columns.take(node)
            if node.name == IN_MEMORY:
                if computed:
                    self._take_cache(node, digests)
                digests[id(node)] = where.caches[id(node)] = self._digest_of_cache(node, cached)
                continue
            if _is_reused(node):
                digests[id(node)] = digests[id(node.children[0])]
                continue
            place = where._replace(cached=cached)
            not_kept = _NOT_KEPT if cached else self._not_kept
            below = [digests[id(child)] for child in node.children]
            digest = digests[id(node)] = digest_of(node, cached, below, not_kept)
            is_more = cached or (digest.size > 1 and not digest.reads_cache)  # than reading a table
            if computed and digest.comparable and is_more and not node.is_exchange:
                self._add(digest, node, place, parts)
        return {node: digest.name for node, digest in digests.items()}

    def _take_work(self, plan: Node, where: _Where, parts: list[PlanPart]) -> None:
        """Take what a plan does, whatever columns it needs; what is below a cache has all of them."""
        digests: dict[int, Digest] = {}
        columns = ColumnMeanings()
        for node, cached, computed in _bottom_up(plan):
            columns.take(node)
            if node.name == IN_MEMORY:  # of one that is not filled, nothing below was computed
                digests[id(node)] = where.caches[id(node)]
                if computed and node.children and fills_cache(node):
                    kept = digests[id(node.children[0])].name
                    self._released.filled(node.children[0], kept, _kept_by(node, where.execution))
                continue
            below = [digests[id(child)] for child in node.children]
            if only_hands_on(node) or _is_reused(node):
                digests[id(node)] = below[0]
            else:
                digest = digests[id(node)] = digest_of_work(node, columns, below, self._not_kept)
                if cached and (_is_all_of_cache(node) or self._released.of(node, digest.name) is None):
                    continue  # what fills a cache is no other work, unless another cache had it
                if computed and digest.comparable and digest.heavy:
                    self._add(digest, node, where, parts)

    def _digest_of_cache(self, scan: Node, is_cached: bool) -> Digest:
        """Return the digest of what the scan of a cache reads, whichever of its columns these are.

        Spark tells what is cached by its plan. Once it is filled anew, its tables may have other rows. While
        it is filled, or again because it keeps too little, the time of its stage is that of the cache.

        Args:
            is_cached: whether it is below another cache: each time, that one computes what it lacks, and
                where it lacks nothing, nobody counts the rows below.
        """
        digest = sha256("\n".join(child.signature() for child in scan.children).encode(errors="replace"))
        cached, is_filled = digest.hexdigest(), fills_cache(scan)
        if cached in self._fills or len(self._fills) < _MOST_PARTS:
            self._fills[cached] += is_filled
        filters = without_ids(scan.text.partition("], [")[2])
        content = "" if is_cached else f"{self._fills[cached]} {scan.rows} "
        digest.update(f"\n{content}{filters}".encode(errors="replace"))
        below = [node.name for child in scan.children for node in child.walk()]
        is_the_same = bool(below) and not any(name.startswith(self._with_other_rows) for name in below)
        comparable = is_the_same and cached in self._fills and not is_filled
        return Digest(digest.hexdigest()[:16], 1, comparable, reads_cache=True)

    def _take_cache(self, scan: Node, digests: Mapping[int, Digest]) -> None:
        """Take how much a cache has of what is below its scan."""
        for child in scan.children:
            part = self._parts.get(digests[id(child)].name)
            if part is not None:
                part.scans += max(1, len(scan.measured_in))  # what is sorted is sampled first
            if part is not None and "], [" not in scan.text:  # which would be a filter
                part.kept_rows = max(part.kept_rows, scan.rows or 0)

    def _add(self, digest: Digest, node: Node, where: _Where, parts: list[PlanPart]) -> None:
        stages = tuple(sorted(node.stages & where.execution.stages.keys()))
        part = self._parts.get(digest.name)
        if not stages or (part is None and len(self._parts) >= _MOST_PARTS):
            return
        if part is None:
            of_program = any(below.name.startswith(OF_PROGRAM) for below in node.walk())
            part = PlanPart(digest.name, _title(node), digest.size, where.cached, of_program)
            part.other_columns = digest.heavy
            part.sources = tuple(node.tables())
            part.calls = ", ".join(calls_in(node.walk()))
            self._parts[digest.name] = part
        if stages != part.last:
            part.last = stages
            time = where.work.time(node)
            part.take(Pass(frozenset(stages), time.time_ms, 0 if where.cached else digest.functions))
            part.executions += part.last_execution != self._executions
            part.last_execution = self._executions
            released = self._released.of(node, digest.name)
            part.after_release += released is not None
            if released is not None and len(self._missed) < _MOST_PARTS:
                self._missed.add(released)
            kept = {rdd for stage in stages for rdd in where.execution.stages[stage].kept}
            cache = _cache_of(node, kept)
            if cache is not None and len(part.caches) < MOST_PASSES:
                part.caches.add(cache)
            part.is_known = part.is_known and time.is_known
            part.count_rows(cache, node.rows or 0)
        if len(part.wholes) < 2:
            part.wholes.add(where.whole)
        if where.place and len(part.places) < MOST_PLACES:
            part.places[where.place] = None
        parts.append(part)


def _is_all_of_cache(node: Node) -> bool:
    """Return whether a node makes all that the cache above it keeps."""
    above = node.parent
    while above is not None and only_hands_on(above):
        above = above.parent
    return above is not None and above.name == IN_MEMORY


def _cache_of(node: Node, kept: set[int]) -> int | None:
    """Return the RDD that is to keep a node below a cache; None if nobody knows which of its stage's it is.

    A cache is made after those that it reads, so that its number is higher.
    """
    around, above = 0, node.parent
    while above is not None:
        around += above.name == IN_MEMORY
        above = above.parent
    below = sum(each.name == IN_MEMORY for each in node.walk())
    if not around or len(kept) != around + below:
        return None
    return sorted(kept, reverse=True)[around - 1]


def _kept_by(scan: Node, execution: EndedExecution) -> set[int]:
    """Return the RDDs that are kept by the stages that fill a cache."""
    stages = {stage for below in scan.walk() for stage in below.stages} & execution.stages.keys()
    return {rdd for stage in stages for rdd in execution.stages[stage].kept}


def _bottom_up(plan: Node) -> Iterator[tuple[Node, bool, bool]]:
    """Yield the nodes of a plan, each after those below it; a plan may be too deep for recursion.

    Yields:
        A node, whether it is below a cache, and whether this execution has computed it, there.
    """
    waiting = [(plan, False, True, False)]
    while waiting:
        node, cached, computed, is_below_done = waiting.pop()
        is_scan = node.name == IN_MEMORY
        if is_below_done or (is_scan and not computed):
            yield node, cached, computed
            continue
        waiting.append((node, cached, computed, True))
        fills = computed and not _is_reused(node) and (not is_scan or fills_cache(node))
        waiting += [(child, cached or is_scan, fills, False) for child in reversed(node.children)]


def _is_reused(node: Node) -> bool:
    """Return whether a node has what an exchange elsewhere in its plan has, which is below it, too."""
    return node.name in REUSED and len(node.children) == 1


def _title(node: Node) -> str:
    """Return what a part of a plan is, for a sentence."""
    tables = node.tables()
    does = (each for each in node.walk() if each.children and not each.is_exchange and not _is_reused(each))
    names = list(dict.fromkeys(each.name for each in does))
    of = tables or outputs(node)
    what = ", ".join(names[:3]) or " ".join(_KIND.findall(node.name)[:1])
    if names == [_INFERS] and any(each.name.startswith(_OF_TEXT) for each in node.walk()):
        what = OF_COLUMNS
    return f"the same {what}" + (f" of {', '.join(of[:3])}" if of else "")
