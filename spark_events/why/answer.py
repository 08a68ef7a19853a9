"""The answer in one sentence: how long a run would have taken without what cost it most."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from spark_events.api.toolkit.formatting import counted, duration, size
from spark_events.diagnosis import thresholds as kinds
from spark_events.diagnosis.queries.state_parts import PARTS
from spark_events.diagnosis.stages.python_time import LOADED_BY, LOADS_LITTLE_MS, NEW_WORKERS, SMALL_TASKS
from spark_events.diagnosis.times.driver_issues import (
    AFTER_RESULT_MS,
    AFTER_RESULT_OF,
    AFTER_STAGE_MS,
    AFTER_STAGE_OF,
    GROWN,
    LOOPED,
)
from spark_events.diagnosis.times.ledger import BATCH, COMPUTING, DRIVER, QUERY, STREAM, WAITING
from spark_events.why.absence import ABSENCES, SPECIAL, absence_of, functions_of, share_of, starts_again
from spark_events.why.found_issue import SHARES, FoundIssue
from spark_events.why.longest_stages import StagesOfPlace
from spark_events.why.places import in_words
from spark_events.why.shown import whole_percent

_DRIVER_ALONE = "driverAloneMs"
"""What only issues have as evidence that are about the driver's own work."""
_QUERY, _APPLICATION = "query ", "application "
_FAR, _LEAST_SHARE = 4, 0.3
"""Stages are told beside the costliest issue that take so many times as long, and such a share of the run."""
_SAME, _OF = "the same ", " of "
"""How what is computed again is called where it is a part of plans, and what comes before its tables."""
_COALESCE = re.compile(r"coalesce(\(\d+\)) (runs|leaves)", re.ASCII)
_MUCH_OF_DRIVER = 0.2
_WORTH_A_SENTENCE = 0.25
"""Issues like the costliest one are told with it that cost such a part of what it costs."""
_MOST_OF_IT = 0.5
"""Such a share of the run makes stages what is told first where no issue is known."""
_WITHOUT_STAGES = frozenset({WAITING, DRIVER, QUERY, BATCH, STREAM})
"""The accounts of time in which no stage runs."""
WAITED_FOR = "disks, other systems, or a CPU that other programs used"


def answer(
    issues: Sequence[FoundIssue],
    duration_ms: int,
    parts: Mapping[str, int] | None,
    longest: Sequence[StagesOfPlace] = (),
    ended: bool = True,
    had_cpu: str = "",
    to_first_work_ms: int = 0,
    unread: int = 0,
) -> str:
    """Return the answer.

    Args:
        issues: of one application, the costliest first.
        duration_ms: how long it has taken.
        parts: what is booked to each account of its ledger, in ms; None if unknown.
        longest: the stages that took longest.
        ended: whether its end is known: else nobody knows how long it takes.
        had_cpu: for how much of the time in which tasks read, compute and write they had a CPU, such as
            ``at most 16 %``, where that is little; else empty.
        to_first_work_ms: how long it took until its first job or query began.
        unread: how many records of its log could not be used: with these, more might be known.
    """
    first = issues[0] if issues else None
    if first and not first.lost_ms and first.kind in SHARES and first.number("shareMs"):
        share_ms = min(_shares_ms(share_of(first), issues), duration_ms)  # some run at the same time
        share = whole_percent(100 * share_ms / max(1, duration_ms))
        return f"Of its time, {share}, {duration(share_ms)}, {share_of(first)}."
    costly = next((issue for issue in issues if issue.lost_ms and issue.kind in ABSENCES), None)
    if costly is None:
        grows = next((issue for issue in issues if issue.kind == kinds.STATE_GROWTH), None)
        of_state = f" The state of {grows.about} only grows." if grows is not None else ""
        of_spill = _of_spill(issues, duration_ms)
        most = _of_python(issues, duration_ms) or _most(
            duration_ms, parts, longest, had_cpu, to_first_work_ms
        )
        # Memory that nobody needs costs no time.
        nothing = _nothing(unread) if most and all(each.kind == kinds.MEMORY for each in issues) else ""
        return f"{of_spill}{nothing}{most}{of_state}".strip()
    waited = _of_waiting(issues, duration_ms, parts)
    if _DRIVER_ALONE in costly.evidence:
        fetches = (issue for issue in issues if issue.kind == kinds.COLLECT and issue is not costly)
        fetched_ms = sum(issue.lost_ms or 0 for issue in fetches)
        of_driver = _of_driver(costly, duration_ms, ended, fetched_ms)
        return waited + of_driver + _far_longer(costly, duration_ms, longest)
    more_ms, elsewhere = _the_same_elsewhere(costly, issues)
    whole = replace(costly, lost_ms=(costly.lost_ms or 0) + more_ms)
    of_costliest = _of_costliest(whole, duration_ms, ended, elsewhere)
    return waited + of_costliest + _far_longer(whole, duration_ms, longest)


def _nothing(unread: int) -> str:
    """Return that no cause is known."""
    records = f", but {counted(unread, 'record')} of its log could not be used" if unread else ""
    return f"No known cause made it slow{records}. "


def _shares_ms(goes_to: str, issues: Sequence[FoundIssue]) -> int:
    """Return what may be lost to the same, in ms: of several issues of one subject, which may be of the same
    stages, the largest.
    """
    shares: dict[str, int] = {}
    for issue in issues:
        if issue.kind in SHARES and not issue.lost_ms and share_of(issue) == goes_to:
            shares[issue.about] = max(shares.get(issue.about, 0), issue.number("shareMs") or 0)
    return sum(shares.values())


def _of_python(issues: Sequence[FoundIssue], duration_ms: int) -> str:
    """Return that functions in Python take much of the run, which may be needed."""
    python = issues[0] if issues and issues[0].kind == kinds.PYTHON else None
    share_ms = min(python.number("shareMs") or 0, duration_ms) if python is not None else 0
    if python is None or share_ms < _LEAST_SHARE * duration_ms:
        return ""
    share = whole_percent(100 * share_ms / max(1, duration_ms))
    tasks = python.number(SMALL_TASKS)
    small = f", in {tasks:,} short tasks" if tasks else ""
    loading = python.number(LOADED_BY)
    if loading and (python.number("runTimeMs") or 0) >= LOADS_LITTLE_MS * loading:
        small = f", which each of its {loading:,} tasks loads anew"
    if started := python.number(NEW_WORKERS):
        small = f", for which {started:,} tasks start a worker each (spark.python.worker.reuse=false)"
    return (
        f"Of its time, {share}, {duration(share_ms)}, goes to Python functions{functions_of(python)} of "
        f"{in_words(python.about)}{small}."
    )


def _of_waiting(issues: Sequence[FoundIssue], duration_ms: int, parts: Mapping[str, int] | None) -> str:
    """Return that stages wait for executors for much of the run, as while a cluster starts them on demand."""
    waited_ms = (parts or {}).get(WAITING, 0)
    are_lost = any(issue.kind == kinds.EXECUTOR_CHURN for issue in issues)
    if are_lost or not duration_ms or waited_ms < _LEAST_SHARE * duration_ms:
        return ""
    share = whole_percent(100 * waited_ms / duration_ms)
    return f"For {share} of its time, {duration(waited_ms)}, its stages have no executors. "


def _of_spill(issues: Sequence[FoundIssue], duration_ms: int) -> str:
    """Return that a stage spills which takes much of the run; nobody knows how long it takes in memory."""
    spill = next((issue for issue in issues if issue.kind == kinds.SPILL), None)
    share_ms = min(spill.number("shareMs") or 0, duration_ms) if spill is not None else 0
    if spill is None or share_ms < _LEAST_SHARE * duration_ms:
        return ""
    share = whole_percent(100 * share_ms / max(1, duration_ms))
    spilled = size(spill.lost_bytes or 0)
    return (
        f"Of its time, {share}, {duration(share_ms)}, goes to {in_words(spill.about)}, whose tasks spill "
        f"{spilled} to disk. "
    )


def _of_driver(costly: FoundIssue, duration_ms: int, ended: bool, fetched_ms: int) -> str:
    """Return for how long only the driver works; the program may need that time, or a part of it.

    Args:
        fetched_ms: how long it takes besides that to fetch large results, which are mended together.
    """
    alone_ms = costly.lost_ms or 0
    whole_ms = min(alone_ms + fetched_ms, duration_ms)
    if not ended:
        return f"So far, only the driver worked or waited for {duration(whole_ms)}."
    share = whole_percent(100 * whole_ms / max(1, duration_ms))
    named = (AFTER_RESULT_OF, AFTER_RESULT_MS), (AFTER_STAGE_OF, AFTER_STAGE_MS)
    of, time = next((each for each in named if each[0] in costly.evidence), named[0])
    place, after_ms = costly.evidence.get(of), costly.number(time) or 0
    part = "all of it" if after_ms == whole_ms else duration(after_ms)
    after = f": {part} after {place}" if place and 2 * after_ms > alone_ms else ""
    if not after and costly.evidence.get(GROWN):
        after = ", while the plans of a loop grow from pass to pass"
    if not after and costly.evidence.get(LOOPED):
        after = ", and a plan looks as if withColumn() was called in a loop"
    fetches = f", {duration(fetched_ms)} of it to fetch results" if fetched_ms else ""
    return f"For {share} of its time, {duration(whole_ms)}, only the driver works or waits{fetches}{after}."


def _of_costliest(costly: FoundIssue, duration_ms: int, ended: bool, elsewhere: str) -> str:
    """Return what the issue that cost most means for the whole, and what is like it elsewhere."""
    absence, may_be_needed = absence_of(costly), costly.kind == kinds.PYTHON and not starts_again(costly)
    lost_ms, whole_ms, whole = costly.lost_ms or 0, duration_ms, "It"
    if not ended:
        by = "spent {} so far in" if may_be_needed else "lost {} so far by"
        return f"It has {by.format(duration(lost_ms))} {absence}{elsewhere}."
    if costly.about.startswith(_QUERY):
        # How long the application lasts says nothing: it ends when its query is stopped.
        whole_ms, whole = costly.number("durationMs") or 0, f"The work of {in_words(costly.about)}"
        absence = absence.replace(in_words(costly.about), "its stages")
    if whole_ms <= lost_ms:
        return f"Most of its time goes to {absence}{elsewhere}."
    if duration(whole_ms - lost_ms) == duration(whole_ms):
        return f"Only {duration(lost_ms)} of {duration(whole_ms)} goes to {absence}{elsewhere}."
    if may_be_needed:
        # Nobody knows how long the same would take otherwise.
        share = whole_percent(100 * lost_ms / whole_ms)
        return f"{whole} spends {share} of its time, {duration(lost_ms)}, in {absence}{elsewhere}."
    condition = f"without {absence}"
    if costly.kind == kinds.TASK_COUNT and "partitions" in costly.evidence:
        condition = "if all cores computed the partitions at once that it fetches one by one"
    elif parts := costly.number(PARTS):
        condition = f"if its state were not kept in {parts:,} parts"
    elif costly.kind == kinds.TASK_COUNT:
        stages = "its stages" if costly.about.startswith((_QUERY, _APPLICATION)) else in_words(costly.about)
        condition = f"if {stages} had {'more' if costly.evidence.get('fewTasks') else 'fewer'} tasks"
        if coalesced := _COALESCE.search(costly.sentence):
            number, verb = coalesced.groups()
            better = f"were repartition{number}" if verb == "runs" else "came last"
            condition = f"if coalesce{number} {better} in {stages}"
    return (
        f"{whole} would take {duration(whole_ms - lost_ms)} instead of {duration(whole_ms)} "
        f"{condition}{elsewhere}."
    )


def _the_same_elsewhere(costly: FoundIssue, issues: Sequence[FoundIssue]) -> tuple[int, str]:
    """Return what other issues cost that need the same change, in ms, and how to name them; 0 if little."""
    alike = [issue for issue in issues if issue.lost_ms and _change_for(issue) == _change_for(costly)]
    others_ms = sum(issue.lost_ms or 0 for issue in alike if issue is not costly)
    of_query = costly.about.startswith(_QUERY)  # whose work alone is the whole
    again = costly.kind == kinds.RECOMPUTATION
    is_alone = costly.kind == kinds.REGRESSION or (again and not _tables(costly))
    if of_query or is_alone or others_ms < _WORTH_A_SENTENCE * (costly.lost_ms or 0):
        return 0, ""
    count = len(alike) - 1
    if again:
        parts = "another part" if count == 1 else f"{count} other parts"
        return others_ms, f", and {parts} with the same sources"
    return others_ms, f", and the same at {'one other place' if count == 1 else f'{count} other places'}"


def _change_for(issue: FoundIssue) -> tuple[object, ...]:
    """Return what issues have in common that people mend in the same way."""
    special = next((name for name in SPECIAL if name in issue.evidence), "")
    few, of_query = issue.evidence.get("fewTasks"), issue.about.startswith(_QUERY)
    verb = issue.sentence.partition(" ")[0] if issue.kind == kinds.SMALL_FILES else ""
    # The answer names these, so that the same at another place has the same ones.
    named = issue.evidence.get("python.functions"), issue.evidence.get("shuffle.keys")
    if issue.kind == kinds.RECOMPUTATION:
        return issue.kind, _tables(issue), issue.about
    return issue.kind, verb, special, few, starts_again(issue), of_query, named


def _tables(issue: FoundIssue) -> str:
    """Return the tables that a part of plans is made of which is computed again; empty for anything else."""
    what = str(issue.evidence.get("recomputation.what") or "")
    is_part = what.startswith(_SAME) and not issue.evidence.get("recomputation.cached")
    return what.partition(_OF)[2] if is_part else ""


def _most(
    duration_ms: int,
    parts: Mapping[str, int] | None,
    longest: Sequence[StagesOfPlace],
    had_cpu: str,
    to_first_work_ms: int,
) -> str:
    """Return what takes most of the time where nothing is wrong; empty where that is unknown."""
    if not parts or not duration_ms:
        return ""
    largest = max(parts, key=lambda account: parts[account])
    share = whole_percent(100 * parts[largest] / duration_ms)
    most = f'The largest part of its time, {share}, is "{largest}".'
    if largest == DRIVER and to_first_work_ms > _MUCH_OF_DRIVER * parts[DRIVER]:
        start_ms = min(to_first_work_ms, parts[DRIVER])
        most = f"{most[:-1]}, {duration(start_ms)} of it before its first job or query."
    if had_cpu and largest == COMPUTING:
        most = (
            f"{most[:-1]}: tasks had a CPU for {had_cpu} of that time, and otherwise waited for {WAITED_FOR}."
        )
    elif had_cpu:
        share = whole_percent(100 * parts.get(COMPUTING, 0) / duration_ms)
        most += f' Of "{COMPUTING}", {share}, tasks had a CPU for {had_cpu}, and otherwise waited for '
        most += f"{WAITED_FOR}."
    if largest in _WITHOUT_STAGES:
        return most
    took_longest = _took_longest(longest)
    if longest and longest[0].wall_ms >= _MOST_OF_IT * duration_ms:  # which says most
        return f"{took_longest.strip()} {most}"
    return most + took_longest


def _far_longer(costly: FoundIssue, duration_ms: int, longest: Sequence[StagesOfPlace]) -> str:
    """Return what took far longer than the costliest issue, whatever that is for; empty if nothing did."""
    if not longest or longest[0].wall_ms < max(_FAR * (costly.lost_ms or 0), _LEAST_SHARE * duration_ms):
        return ""
    return _took_longest(longest)


def _took_longest(longest: Sequence[StagesOfPlace]) -> str:
    """Return a further sentence about the stages that took longest; empty if none are known."""
    if not longest:
        return ""
    verb = "is" if longest[0].stages == 1 else "are"
    return f" What took longest, {duration(longest[0].wall_ms)}, {verb} {longest[0].title}."
