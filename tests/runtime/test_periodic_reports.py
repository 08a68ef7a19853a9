"""When a metric reporter reports again; what becomes of its reports is in ``test_registry``."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.api import PartlyRefused, Refused, RetryLater, Scheduled
from spark_events.runtime.log_once import OnceLog
from spark_events.runtime.workers.inbox import Inbox, QueueBounds
from spark_events.runtime.workers.reporter_calls import Backoff, Flusher, PeriodicReports
from spark_events.runtime.workers.stats import ReporterAccount, ReporterStats


class Asks(Scheduled):
    """A reporter whose destination asks for a pause, in ms, or for none."""

    def __init__(self, after_ms: int | None) -> None:
        self.after_ms = after_ms

    def report(self) -> None:
        raise RetryLater("not now", self.after_ms)


@pytest.mark.parametrize(
    ("after_ms", "least_s", "most_s"),
    [(None, 0, 0.001), (60_000, 50, 60), (10**15, 890, 900)],
    ids=["the interval", "a minute", "no more than 15 minutes"],
)
def test_a_destination_that_asks_for_a_pause(after_ms: int | None, least_s: float, most_s: float) -> None:
    account = ReporterAccount("metric reporter 'x'", OnceLog(), ReporterStats())
    reports = PeriodicReports(Asks(after_ms), 1, account)
    reports.report_if_due()
    while not account.stats.retries.count:  # it is due after 1 ms
        reports.report_if_due()
    assert least_s <= reports.due_in_s <= most_s


class Refuses(Scheduled):
    """A reporter whose destination does not want what it sends, and says so in lines of its own."""

    def report(self) -> None:
        raise Refused("the collector answered 400: no\n2026-11-29 ERROR all is lost")


def test_a_refusal_is_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    """In one, an answer's lines would be lines of the log."""
    account = ReporterAccount("metric reporter 'x'", OnceLog(), ReporterStats())
    reports = PeriodicReports(Refuses(), 1, account)
    for _ in range(3):
        reports.report()
    (record,) = caplog.records
    assert record.exc_info is None
    assert account.stats.refused.count == 3


class Raises(Scheduled):
    """A reporter with a bug."""

    def report(self) -> None:
        raise KeyError("x")


@pytest.mark.parametrize("reporter", [Asks(None), Refuses(), Raises()])
def test_the_last_values_that_do_not_get_through(
    reporter: Scheduled, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody retries any more; whoever looks at the destination sees older ones."""
    account = ReporterAccount("metric reporter 'x'", OnceLog(), ReporterStats())
    reports = PeriodicReports(reporter, 1, account)
    for _ in range(3):
        reports.report()
    assert "the last values" not in caplog.text
    reports.report_last()
    assert caplog.text.count("metric reporter 'x' could not report the last values") == 1


class RefusesOne(Scheduled):
    """A reporter whose destination takes all but one series."""

    def report(self) -> None:
        raise PartlyRefused(1, "one is wrong")


def test_the_last_values_of_which_one_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    """The others are there."""
    account = ReporterAccount("metric reporter 'x'", OnceLog(), ReporterStats())
    PeriodicReports(RefusesOne(), 1, account).report_last()
    assert "one is wrong" in caplog.text
    assert "the last values" not in caplog.text


class IsBack(Scheduled):
    """A reporter whose destination is away at first."""

    def __init__(self) -> None:
        self.is_away = True

    def flush(self) -> None:
        """It sends nothing with what it is told of."""

    def report(self) -> None:
        if self.is_away:
            raise RetryLater("connection refused")


def test_series_that_are_known_have_not_been_reported() -> None:
    """They are with the first report that gets through: a destination that is away has not succeeded."""
    account = ReporterAccount("metric reporter 'x'", OnceLog(), ReporterStats())
    reporter: Any = IsBack()
    reports = PeriodicReports(reporter, 1, account)
    inbox = Inbox(QueueBounds(10, 1 << 20), account.stats)
    flusher = Flusher(reporter, inbox, Backoff(), account, reports.note)
    list(flusher.flush(240))
    reports.report()
    assert (account.stats.reported.count, account.stats.last_success_ms) == (0, None)
    reporter.is_away = False
    reports.report()
    assert account.stats.reported.count == 240
    assert account.stats.last_success_ms
