"""Loops in the program whose jobs are SQL executions, of which Spark says no place in the code."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution, ExecutedStage
from spark_events.diagnosis.thresholds import Thresholds
from spark_events.diagnosis.times.driver_time import DriverTime
from spark_events.diagnosis.times.pauses import WorkDone
from tests.support.plans import Plan, executed

S = 1_000
LOOP, IDLE = "loop-of-small-jobs", "idle-cores"


def scan(plan: Plan, depth: int, what: str) -> Plan:
    """Add a scan of a table, or of files at a path."""
    if "/" not in what:
        return plan(depth, f"Scan parquet {what} [a#1]", 1)
    return plan(depth, "Scan parquet  [a#1]", 1, {"Location": f"InMemoryFileIndex(1 paths)[file:{what}]"})


def counted(what: str) -> Plan:
    return scan(Plan()(0, "HashAggregate(keys=[])")(1, "Exchange SinglePartition"), 2, what)


def written(what: str, into: str) -> Plan:
    return scan(Plan()(0, f"Execute InsertIntoHadoopFsRelationCommand file:{into}"), 1, what)


class Program:
    """A program that runs one SQL execution after the other, on 8 cores."""

    def __init__(self) -> None:
        self.time = DriverTime(Thresholds(idle_time_ms=10 * S))
        self.time.executor_added("1", 8, 0)
        self.now_ms = 0
        self.run(Plan()(0, "Range (0, 9)", 1))  # what comes first takes long anyway

    def run(
        self, plan: Plan, plans_ms: int = 300, stage_ms: int = 200, before_ms: int = 100, run_ms: int = 200
    ) -> None:
        """Let an execution begin after some time of the program, be planned, and run a stage without a place."""
        begun_ms = self.now_ms + before_ms
        submitted_ms = begun_ms + plans_ms
        ended_ms = submitted_ms + stage_ms
        self.time.executions(1, begun_ms)
        self.time.stage_submitted((submitted_ms, 0), submitted_ms)
        self.time.stage_completed(
            (submitted_ms, 0), WorkDone("", f"execution {begun_ms}", run_ms, 0), ended_ms
        )
        self.time.execution_planned(self._ended(plan, begun_ms, submitted_ms, ended_ms))
        self.time.executions(-1, ended_ms)
        self.now_ms = ended_ms

    def _ended(self, plan: Plan, begun_ms: int, submitted_ms: int, ended_ms: int) -> EndedExecution:
        stage = ExecutedStage(1, 8, submitted_ms, ended_ms, 200, 0, 0)
        return replace(executed(plan, cores=8), begun_ms=begun_ms, ended_ms=ended_ms, stages={1: stage})

    def issues(self) -> list[Issue]:
        self.time.end(self.now_ms)
        return list(self.time.issues(self.now_ms))

    def told(self) -> dict[str, Issue]:
        return {issue.kind: issue for issue in self.issues()}


@pytest.mark.parametrize("seed", range(8))
def test_a_loop_over_parts_of_a_folder(seed: int) -> None:
    """What it costs is known: all of its time, but for what the tasks would need on all cores."""
    chance = random.Random(seed)
    passes = chance.randint(30, 300)
    plans_ms, stage_ms, before_ms = (chance.randint(100, 400) for _ in range(3))
    program = Program()
    for number in range(passes):
        program.run(counted(f"/lake/shops/shop={number}"), plans_ms, stage_ms, before_ms)
    (issue,) = program.issues()

    cost_ms = passes * (before_ms + plans_ms + stage_ms - 200 / 8)
    assert issue.kind == LOOP
    assert issue.lost_ms == pytest.approx(cost_ms, rel=0.05)
    assert f"{passes} small jobs of the query of file:/lake/shops run" in issue.sentence
    assert issue.advice.startswith("Each reads another part of file:/lake/shops: read all of it at once")


def test_one_that_reads_the_same_each_time() -> None:
    program = Program()
    for _ in range(60):
        program.run(counted("db.orders"))
    assert program.told()[LOOP].advice.startswith("A loop in the driver runs a small job each time")


def test_one_that_reads_other_folders_each_time() -> None:
    """They are in no folder that could be read at once."""
    program = Program()
    for number in range(60):
        program.run(counted(f"/in/{number}/orders"))
    issue = program.told()[LOOP]
    assert "of the query of file:/in/0/orders and others run one after the other" in issue.sentence
    assert issue.advice.startswith("A loop in the driver runs a small job each time")


@pytest.mark.parametrize(
    ("into", "told"),
    [
        ("/out/day=1", "file:/out run"),
        ("/out/{}", "file:/out run"),
        ("/{}/out", "file:/0/out and others run"),
    ],
)
def test_one_that_writes_elsewhere_each_time(into: str, told: str) -> None:
    """The first of many places is not the one that all are written into."""
    program = Program()
    for number in range(60):
        program.run(written("db.orders", into.format(number)))
    assert f"60 small jobs of the write into {told}" in program.told()[LOOP].sentence


def test_what_is_read_after_a_loop_does_not_rename_it() -> None:
    """It would be another issue, and its cost be told twice."""
    program = Program()
    for number in range(60):
        program.run(counted(f"/lake/shops/shop={number}"))
    (before,) = (issue for issue in program.time.issues(program.now_ms) if issue.kind == LOOP)
    program.run(counted("/out/result"))
    after = program.told()[LOOP]
    assert (before.cause, before.evidence["loop.place"]) == (after.cause, after.evidence["loop.place"])


def test_several_executions_in_each_pass() -> None:
    """None of them takes long enough to be told alone."""
    program = Program()
    for number in range(20):
        program.run(counted(f"/lake/shops/shop={number}"))
        program.run(written(f"/lake/shops/shop={number}", "/out/day=1"))
    issues = [issue for issue in program.issues() if issue.kind == LOOP]
    assert sorted(str(issue.evidence["loop.place"]) for issue in issues) == [
        "the query of file:/lake/shops",
        "the write into file:/out",
    ]
    assert sum(issue.lost_ms or 0 for issue in issues) == pytest.approx(40 * 575 * 19 / 20, rel=0.05)


def several_shapes() -> Iterable[Plan]:
    for number in range(60):
        plan = counted(f"db.t{number}")
        for depth in range(number):
            plan(3 + depth, f"Project [a#{depth}]")
        yield plan


def test_other_queries_each_time_are_no_loop() -> None:
    """As those of a benchmark, or of a report."""
    program = Program()
    for plan in several_shapes():
        program.run(plan)
    assert LOOP not in program.told()


def test_long_jobs_are_no_loop_of_small_ones() -> None:
    program = Program()
    for number in range(60):
        program.run(counted(f"/lake/shops/shop={number}"), stage_ms=6 * S, run_ms=48 * S)
    assert LOOP not in program.told()


def test_what_the_program_does_between_them_is_not_of_the_jobs() -> None:
    """It asks a service for 2 s each time: that is told as such, and the loop without it."""
    program = Program()
    for number in range(60):
        program.run(counted(f"/lake/shops/shop={number}"), before_ms=2 * S + 500)
    told = program.told()
    assert told[LOOP].lost_ms == pytest.approx(60 * (500 + 500 - 25), rel=0.05)
    assert told[IDLE].lost_ms == pytest.approx(60 * 2 * S, rel=0.05)


def test_executions_that_run_at_the_same_time_are_no_loop() -> None:
    """As in threads: what one of them does is not known."""
    program = Program()
    time = program.time
    for number in range(60):
        begun_ms = 10 * S + number * 600
        time.executions(1, begun_ms)
        time.stage_submitted((number, 0), begun_ms + 300)
        time.stage_completed((number, 0), WorkDone("", f"execution {number}", 200, 0), begun_ms + 500)
        if number:
            ended = replace(executed(counted(f"/lake/shop={number}")), begun_ms=begun_ms - 600)
            time.execution_planned(ended)
            time.executions(-1, begun_ms + 550)
    program.now_ms = 60 * S
    assert LOOP not in program.told()


def grown(passes: int, cached: bool = False) -> Iterable[Plan]:
    """Return the plans of a loop in which each joins what the one before has made, or reads a cache of it."""
    for number in range(passes):
        plan = Plan()
        for depth in range(10 if cached else 10 * 2**number):
            plan(depth, f"Project [a#{depth}]")
        yield plan(10 if cached else 10 * 2**number, "Scan parquet db.edges [a#1]", 1)


@pytest.mark.parametrize(("cached", "is_told"), [(False, True), (True, False)])
def test_plans_that_grow_in_a_loop(cached: bool, is_told: bool) -> None:
    program = Program()
    for number, plan in enumerate(grown(7, cached)):
        program.run(plan, plans_ms=S * (1 + number))
    issue = program.told()[IDLE]
    assert ("driverAlone.grown" in issue.evidence) is is_told
    assert issue.advice.startswith("Plans grow from 11 to 641 nodes") is is_told


def test_other_queries_of_the_same_table_are_no_loop() -> None:
    """Each is larger than the one before, by chance, and has none of it in it."""
    program = Program()
    for number in range(7):
        plan = Plan()
        for depth in range(10 * 2**number):
            plan(depth, f"Kind{number} [a#{depth}]")
        program.run(plan(10 * 2**number, "Scan parquet db.edges [a#1]", 1), plans_ms=S * (1 + number))
    assert "driverAlone.grown" not in program.told()[IDLE].evidence


def test_a_loop_that_is_over_is_told() -> None:
    program = Program()
    for number, plan in enumerate([*grown(7), counted("db.edges"), counted("db.edges")]):
        program.run(plan, plans_ms=S * (1 + number) if number < 7 else 100)
    assert program.told()[IDLE].evidence["driverAlone.grown"] == 641


def test_plans_that_grow_are_not_told_where_the_driver_does_something_else() -> None:
    program = Program()
    for plan in grown(7):
        program.run(plan, plans_ms=100, before_ms=9 * S)
    issue = program.told()[IDLE]
    assert "driverAlone.grown" not in issue.evidence
