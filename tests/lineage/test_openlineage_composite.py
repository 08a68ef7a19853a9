"""A composite transport of OpenLineage's client over real servers: one that fails does not hold up the others."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
from spark_events_openlineage import branches
from spark_events_openlineage.transport import Destination

from spark_events.api import Refused, RetryLater
from tests.support.catalogue import Catalogue
from tests.support.waiting import free_port, wait_until

NAMES = [f"job {number}" for number in range(5)]


def event(name: str) -> bytes:
    return json.dumps(
        {
            "run": {"runId": "01936f7c-7a4e-7b8a-9c5d-000000000000"},
            "job": {"namespace": "n", "name": name},
            "eventTime": "2026-11-20T00:00:00Z",
            "producer": "https://p",
            "eventType": "START",
        }
    ).encode()


def names(of: Catalogue) -> list[str]:
    return [event["job"]["name"] for event in of.events]


@pytest.fixture
def first() -> Iterator[Catalogue]:
    made = Catalogue()
    yield made
    made.go_on.set()
    made.stop()


@pytest.fixture
def second() -> Iterator[Catalogue]:
    made = Catalogue()
    made.start()
    yield made
    made.stop()


def to(*urls: str, timeout: float = 20) -> Destination:
    transports = [{"type": "http", "url": url, "timeout": timeout} for url in urls]
    return Destination(lambda: {"type": "composite", "transports": transports}, "key")


def test_one_that_is_away_gets_all_in_order_when_it_is_back(first: Catalogue, second: Catalogue) -> None:
    destination = to(first.url, second.url)
    for name in NAMES:
        destination.send(event(name))
    assert names(second) == NAMES
    first.start()
    wait_until(lambda: len(first.events) == len(NAMES), "it has got what waited")
    destination.send(event("later"))
    wait_until(lambda: names(first) == [*NAMES, "later"], "in order")
    destination.close()


def test_one_that_does_not_answer_holds_up_the_first_event_only(first: Catalogue, second: Catalogue) -> None:
    """A request waits for it until its time is over; from then on a thread of its own waits."""
    first.go_on.clear()
    first.start()
    destination = to(first.url, second.url, timeout=0.5)
    for name in NAMES:
        destination.send(event(name))
        assert names(second)[-1] == name
    first.go_on.set()
    # What was under way when the time was over has arrived, too: an event may come twice, as everywhere.
    wait_until(lambda: list(dict.fromkeys(names(first))) == NAMES, "it has got all")
    destination.close()


def test_while_all_are_away_the_runtime_keeps_the_event(first: Catalogue, second: Catalogue) -> None:
    second.code = 503
    destination = to(first.url, second.url)
    for _ in range(2):
        with pytest.raises(RetryLater):
            destination.send(event("kept"))
    second.code = 200
    first.start()
    destination.send(event("kept"))
    assert (names(first), names(second)) == (["kept"], ["kept"])
    destination.close()


def test_what_one_refuses_reaches_the_other(
    first: Catalogue, second: Catalogue, caplog: pytest.LogCaptureFixture
) -> None:
    first.code = 422
    first.start()
    destination = to(first.url, second.url)
    with caplog.at_level(logging.WARNING):
        destination.send(event("odd"))
    assert names(second) == ["odd"]
    assert "answers 422" in caplog.text
    second.code = 422
    with pytest.raises(Refused, match="answers 422"):
        destination.send(event("odd"))
    destination.close()


def test_what_is_lost_at_the_end_is_said(second: Catalogue, caplog: pytest.LogCaptureFixture) -> None:
    away = f"http://me:s3cr3t@127.0.0.1:{free_port()}"
    destination = to(away, second.url)
    for name in NAMES:
        destination.send(event(name))
    with caplog.at_level(logging.WARNING):
        destination.close()
    assert f"has not got {len(NAMES)} events" in caplog.text
    assert "s3cr3t" not in caplog.text


def test_too_many_are_not_kept(
    second: Catalogue, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_events_openlineage.branches._MOST_WAITING_BYTES", 2 * len(event("job 0")))
    destination = to(f"http://127.0.0.1:{free_port()}", second.url)
    with caplog.at_level(logging.WARNING):
        for name in NAMES:
            destination.send(event(name))
        destination.close()
    assert caplog.text.count("too many events wait for it") == 1
    assert f"has not got {len(NAMES)} events" in caplog.text
    assert names(second) == NAMES


@pytest.mark.parametrize("code", [401, 403, 404, 405, 407, 421])
def test_a_wrong_configuration_costs_no_events(first: Catalogue, second: Catalogue, code: int) -> None:
    """Somebody may mend it: what waits is then sent, as over OTLP."""
    first.code = code
    first.start()
    destination = to(first.url, second.url)
    destination.send(event("early"))
    wait_until(lambda: first.asked > 0, "it was asked")
    first.code = 200
    wait_until(lambda: names(first) == ["early"], "it has what waited")
    destination.close()


class Raises:
    """Raises what the client of a catalogue may raise for odd answers, some times, and then takes all."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.taken: list[bytes] = []

    def __call__(self, record: bytes) -> None:
        if self.times:
            self.times -= 1
            raise OverflowError("timestamp too large to convert to C PyTime_t")
        self.taken.append(record)


@pytest.mark.parametrize(("times", "kept"), [(3, [b"a", b"b"]), (5, [b"b"])])
def test_one_that_raises_goes_on(
    times: int, kept: list[bytes], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After five times, the event may be the reason, and the next ones are sent."""
    monkeypatch.setattr(branches, "_FIRST_PAUSE_S", 0.01)
    odd, good = Raises(times), Raises(0)
    both = branches.Branches([branches.Branch("odd", odd), branches.Branch("good", good)])
    odd.times += 1  # it raises at once, too
    for record in (b"a", b"b"):
        both.send(record)
    wait_until(lambda: odd.taken == kept, "it has got what it takes")
    both.close()
    assert good.taken == [b"a", b"b"]
    assert "OverflowError" in caplog.text


def test_what_all_raise_is_the_runtimes() -> None:
    """It tries a few times, and says what was raised."""
    both = branches.Branches([branches.Branch(name, Raises(9)) for name in "ab"])
    with pytest.raises(OverflowError):
        both.send(b"a")


def test_a_pause_that_is_asked_for_has_a_limit() -> None:
    asked = RetryLater("later", 10**15)
    assert branches._pause_s(asked, 1.0) == 900
