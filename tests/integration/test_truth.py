"""What the report says of random sequences of real drivers, against an oracle that only knows what was done."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.prometheus_rules import INTERVAL_S, Firing, Watch, watching
from tests.support.requirements import need
from tests.support.truth import Outage, Sequence, await_lost, expected, outages, report
from tests.support.waiting import free_port, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("java"), pytest.mark.timeout(7_200)]
SLACK_S = 1.0
"""How late the stopwatch sees a commit, and how long a process takes to do what it is told, at each end."""


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(2), marks=pytest.mark.extended),
        pytest.param(range(2, 8), marks=pytest.mark.thorough),
        pytest.param(range(8, 100), marks=pytest.mark.soak),
    ],
)
def test_the_report_is_true(tmp_path: Path, seeds: range) -> None:
    """Up, down, failures and restarts of each sequence are within a heartbeat of the truth."""
    with ThreadPoolExecutor(3) as pool:
        wrong = [text for text in pool.map(lambda seed: check(tmp_path, seed), seeds) if text]
    assert not wrong, "\n".join(wrong)


def check(folder: Path, seed: int) -> str:
    """Run a sequence; return what the report says wrongly of it."""
    sequence = Sequence(folder / f"sequence-{seed}", seed)
    sequence.run()
    await_lost(sequence)
    rows, until_s = report(sequence)
    told, truth = rows["query"], expected(sequence, until_s)
    tolerance_s = sum(life.tolerance_s + SLACK_S for life in sequence.lived)
    said = {
        "up": told["up_ms"] / 1000,
        "down": told["down_ms"] / 1000,
        "failures": told["failures"],
        "restarts": told["restarts"],
    }
    close = all(abs(said[name] - truth[name]) <= tolerance_s for name in ("up", "down"))
    if close and all(said[name] == truth[name] for name in ("failures", "restarts")):
        return ""
    ends = [life.end for life in sequence.lived]
    return f"seed {seed}: {ends}: said {said}, but it was {truth}, within {tolerance_s:.1f} s"


# -- who is woken -------------------------------------------------------------------------------------------

PROMISED_S = 180 * INTERVAL_S / 15
"""What docs/dashboards.md promises of SparkQueryDown, at the pace of the tests' Prometheus."""
UNNOTICED_S = 120 * INTERVAL_S / 15
"""An outage that is shorter wakes nobody."""
RESOLVED_S = 60 * INTERVAL_S / 15
LATE_S = 3.0
"""How late a busy machine may scrape and evaluate."""


@pytest.mark.prometheus
@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(1_000, 1_003), marks=pytest.mark.thorough),
        pytest.param(range(1_003, 1_030), marks=pytest.mark.soak),
    ],
)
def test_the_alerts_are_true(tmp_path: Path, seeds: range) -> None:
    """Each outage that lasts wakes somebody in the promised time; nothing else does."""
    need("prometheus", "prometheus")
    ports = {seed: free_port() for seed in seeds}
    with (
        watching(tmp_path / "prometheus", list(ports.values())) as watch,
        ThreadPoolExecutor(3) as pool,
    ):
        checked = pool.map(lambda seed: check_alerts(tmp_path, seed, ports[seed], watch), seeds)
        wrong = [text for text in checked if text]
        assert not wrong, "\n".join(wrong)


def check_alerts(folder: Path, seed: int, port: int, watch: Watch) -> str:
    """Run a sequence; return which page was missing, or told what is not."""
    conf = {
        "spark.metrics.reporter.prom.factory.class": "prometheus",
        "spark.metrics.reporter.prom.port": str(port),
    }
    lasting_s = PROMISED_S + LATE_S
    sequence = Sequence(folder / f"alerts-{seed}", seed, conf=conf, gaps_s=(1.0, lasting_s))
    sequence.run()
    over_s = sequence.lived[-1].end_s + lasting_s
    wait_until(lambda: time.time() > over_s, "the promised time is over")
    now_s = time.time()
    name = sequence.folder.name
    pages = [page for page in watch.firings(pages=True) if page.labels.get("app_name") == name]
    down = outages(sequence, now_s)
    missing = [outage for outage in down if not is_paged(outage, pages)]
    false = [page for page in pages if not any(is_about(page, outage) for outage in down)]
    if not missing and not false:
        return ""
    lived = [(life.end, round(life.up_s - now_s, 1), round(life.end_s - now_s, 1)) for life in sequence.lived]
    told = [(page.alert, page.from_s - now_s, page.to_s and page.to_s - now_s) for page in pages]
    return f"seed {seed}: {lived}, pages {told}: missing {missing}, false {false}"


def is_paged(outage: Outage, pages: list[Firing]) -> bool:
    """Return whether an outage was paged for in time, or was too short for that."""
    if outage.to_s - outage.from_s < PROMISED_S + LATE_S - 0.5:
        return True
    latest_s = outage.from_s + PROMISED_S + LATE_S
    return any(outage.from_s < page.from_s <= latest_s for page in pages)


def is_about(page: Firing, outage: Outage) -> bool:
    """Return whether a page came while an outage lasted, and was resolved soon after it."""
    resolved = page.to_s is None or page.to_s < outage.to_s + RESOLVED_S + LATE_S
    return outage.from_s + UNNOTICED_S - 1 < page.from_s < outage.to_s + LATE_S and resolved
