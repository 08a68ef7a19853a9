"""The rule about what takes much longer than in its own past: when it speaks, and what it says has changed."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.earlier_runs.past_runs import PastRun, Work, digests
from spark_events.diagnosis.earlier_runs.regression import work_regression
from spark_events.diagnosis.thresholds import Thresholds

S = 1_000
GIB = 1 << 30


def run(duration_ms: int, plan: str = "p1", version: str = "4.3.0", **figures: int) -> tuple[PastRun, Work]:
    settings = digests({"spark.sql.shuffle.partitions": figures.pop("partitions", 200)})
    work = Work("save", plan=plan, times=1, duration_ms=duration_ms, figures=figures)
    return PastRun("app", 0, version, settings, works=[work]), work


PAST = [run((100 + number) * S, inputBytes=GIB, tasks=100, cores=8) for number in range(20)]
"""100 to 119 s; the 95th percentile is 118."""


def compared(now: tuple[PastRun, Work], past: list[tuple[PastRun, Work]] = PAST) -> object:
    return work_regression(now[1], now[0], past, Thresholds())


def words(now: tuple[PastRun, Work]) -> object:
    issue = compared(now)
    assert issue is not None
    return issue.evidence["changed"]


def test_when_it_speaks() -> None:
    """Above 1.5 times the 95th percentile, and not a ms before; the cost is what is more than the median."""
    assert compared(run(177 * S, cores=8)) is None
    issue = compared(run(177 * S + 1, inputBytes=GIB, tasks=100, cores=8))
    assert (issue.kind, issue.lost_ms) == ("regression", 177 * S + 1 - 109_500)
    assert issue.evidence["changed"] == ()
    assert "in its last 20 runs, 1 min 50 s at the median" in issue.sentence
    assert issue.advice.startswith("Nothing that Spark measures has changed")


def test_of_few_runs_none_took_longer_than_the_longest() -> None:
    assert " in 95 % of them" in compared(run(1_000 * S)).sentence
    assert ", and at most 1 min 58 s; " in compared(run(1_000 * S), PAST[:19]).sentence


def test_with_four_runs_nobody_knows_what_is_usual() -> None:
    assert compared(run(1_000 * S), PAST[:4]) is None
    assert compared(run(1_000 * S), PAST[:5]) is not None


@pytest.mark.parametrize(
    ("now", "said", "advice"),
    [
        (run(900 * S, inputBytes=10 * GIB), "read from sources: 10 GiB, usually 1 GiB, 10.0 times", "It read more data"),
        (run(900 * S, diskSpilledBytes=GIB), "spilled to disk: 1 GiB, usually 0 bytes", "Its tasks no longer fit"),
        (run(900 * S, failedTasks=7), "failed tasks: 7, usually 0", "See why tasks fail"),
        (run(900 * S, cores=4), "cores: 4, usually 8", "It had fewer cores"),
        (run(900 * S, plan="p2"), "its plan is new", "The plan changed"),
        (run(900 * S, version="4.4.0"), "Spark 4.4.0, before 4.3.0", "Look at the settings"),
        (run(900 * S, partitions=20), "settings: spark.sql.shuffle.partitions", "Look at the settings"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_changed(now: tuple[PastRun, Work], said: str, advice: str) -> None:
    assert words(now) == (said,)
    issue = compared(now)
    assert said in issue.sentence
    assert issue.advice.startswith(advice)


def test_what_was_as_high_before_has_not_changed() -> None:
    """Nor what has grown by a little."""
    once = [*PAST[:-1], run(110 * S, inputBytes=10 * GIB)]
    issue = compared(run(900 * S, inputBytes=10 * GIB), once)
    assert issue.evidence["changed"] == ()
    assert words(run(900 * S, inputBytes=int(1.4 * GIB))) == ()


def test_secrets_are_not_kept() -> None:
    """Not even as digests: a short one could be guessed."""
    assert digests({"spark.ssl.keyPassword": "x", "spark.x": "1"}) == digests({"spark.x": "1"})


def test_a_run_is_read_as_it_was_written() -> None:
    before, _ = run(5 * S, inputBytes=3)
    before.whole.figures["tasks"] = 4
    assert PastRun.from_json(before.to_json()) == before


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b'{"version":2,"run":{}}', b'{"version":1,"run":{"x":1}}', b'{"version":1,"run":[]}']
)  # fmt: skip
def test_what_is_no_run(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"not a past run|version 2; this is 1|unexpected|zero-length|input"):
        PastRun.from_json(text)


def test_the_same_work_by_plan_or_else_by_number() -> None:
    """Two of one call site are told apart by their plans; one whose plan is new, by its turn."""
    past = PastRun("app", 0, works=[Work("save", 0, "a"), Work("save", 1, "b"), Work("load", 0, "b")])
    assert past.like(Work("save", 0, "b")) == past.works[1]
    assert past.like(Work("save", 1, "new")) == past.works[1]
    assert past.like(Work("save", 2, "new")) is None
    assert past.like(Work("count", 0, "a")) is None
