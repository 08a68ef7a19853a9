"""What a destination can do to a reporter, tried on the real collector; nothing is lost, and order is kept."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spark_events.api import ApplicationInfo, Event
from spark_events.runtime.registry import Registry
from spark_events.runtime.setup import read_all_setups
from tests.support.collector import Collector
from tests.support.fault_reporting import Reporting
from tests.support.otlp_backend import Answer, Backend
from tests.support.waiting import free_port, wait_until

pytestmark = pytest.mark.collector
MakeCollector = Callable[..., Collector]
PROTOCOLS = pytest.mark.parametrize("protocol", ["grpc", "http"])


def written(collector: Collector, ids: list[str]) -> None:
    """The collector wrote each of these, and each once, in order."""
    wait_until(lambda: len(collector.ids()) >= len(ids), "the collector has written all")
    assert collector.ids() == ids


def has(collector: Collector, ids: list[str]) -> None:
    """The collector wrote each of these, and nothing else; some perhaps twice."""
    wait_until(lambda: set(collector.ids()) >= set(ids), "the collector has written all")
    assert sorted(set(collector.ids())) == ids


@PROTOCOLS
@pytest.mark.parametrize("journaled", [True, False], ids=["journal", "memory"])
def test_down_at_start(own_collector: MakeCollector, tmp_path: Path, protocol: str, journaled: bool) -> None:
    """A collector that comes later than the application gets everything."""
    collector = own_collector()
    journal = tmp_path / "journal" if journaled else None
    reporting = Reporting(getattr(collector, protocol), journal, exporter__protocol=protocol)
    ids = reporting.emit(1_000)
    wait_until(lambda: reporting.worker.stats.retries.count >= 2, "it was tried in vain")
    collector.start()
    reporting.delivered(1_000)
    reporting.close()

    written(collector, ids)
    assert reporting.balance() == {"reported": 1_000, "queued": 0}


@PROTOCOLS
@pytest.mark.parametrize("seconds", [3, pytest.param(60, marks=pytest.mark.soak)])
def test_down_in_the_middle(
    own_collector: MakeCollector, tmp_path: Path, protocol: str, seconds: int
) -> None:
    """A collector that is away for a while gets what happened meanwhile."""
    collector = own_collector()
    collector.start()
    reporting = Reporting(getattr(collector, protocol), tmp_path / "journal", exporter__protocol=protocol)
    ids = reporting.emit(500)
    reporting.delivered(500)
    collector.stop()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ids += reporting.emit(50)
        tries = reporting.worker.stats.retries.count
        wait_until(lambda before=tries: reporting.worker.stats.retries.count > before, "a try")
    collector.start()
    reporting.delivered(len(ids))
    reporting.close()

    has(collector, ids)


@PROTOCOLS
def test_restarted_ten_times(own_collector: MakeCollector, tmp_path: Path, protocol: str) -> None:
    """Each restart costs repeats at the most: the same ids again."""
    collector = own_collector()
    reporting = Reporting(getattr(collector, protocol), tmp_path / "journal", exporter__protocol=protocol)
    ids: list[str] = []
    for _ in range(10):
        collector.start()
        ids += reporting.emit(200)
        reporting.delivered(len(ids) - 100)
        collector.stop()
        ids += reporting.emit(20)
    collector.start()
    reporting.delivered(len(ids))
    reporting.close()

    has(collector, ids)


@PROTOCOLS
def test_hangs_without_an_answer(own_collector: MakeCollector, tmp_path: Path, protocol: str) -> None:
    """A collector that is stopped like a debugger would: closing is bounded, and the next start sends the rest."""
    collector = own_collector()
    collector.start()
    endpoint = getattr(collector, protocol)
    reporting = Reporting(endpoint, tmp_path / "journal", exporter__protocol=protocol)
    ids = reporting.emit(10)
    reporting.delivered(10)
    collector.hang()
    ids += reporting.emit(100)
    reporting.stored()
    before = time.monotonic()
    reporting.registry.close(1_000)
    took = time.monotonic() - before
    collector.go_on()
    reporting.gone()
    again = Reporting(endpoint, tmp_path / "journal", exporter__protocol=protocol)
    again.delivered(len(ids))
    again.close()

    assert took < 3  # a bound that was promised, and no measurement
    has(collector, ids)


@PROTOCOLS
def test_hangs_and_goes_on(own_collector: MakeCollector, tmp_path: Path, protocol: str) -> None:
    """A request without an answer is sent again after exporter.timeout."""
    collector = own_collector()
    collector.start()
    options = {"exporter__protocol": protocol, "exporter__timeout": "300ms"}
    reporting = Reporting(getattr(collector, protocol), tmp_path / "journal", **options)
    collector.hang()
    ids = reporting.emit(100)
    wait_until(lambda: reporting.worker.stats.retries.count >= 2, "it was tried in vain")
    collector.go_on()
    reporting.delivered(100)
    reporting.close()

    has(collector, ids)


def test_name_that_does_not_resolve(own_collector: MakeCollector, tmp_path: Path) -> None:
    """A host name without an address is an outage like any other."""
    collector = own_collector()
    collector.start()
    for protocol in ("grpc", "http"):
        endpoint = "http://no-such-collector.invalid:4317"
        journal = tmp_path / protocol
        reporting = Reporting(endpoint, journal, exporter__protocol=protocol)
        ids = reporting.emit(10)
        wait_until(lambda r=reporting: r.worker.stats.retries.count, "it was tried in vain")
        reporting.close()
        again = Reporting(getattr(collector, protocol), journal, exporter__protocol=protocol)
        again.delivered(10)
        again.close()

        assert reporting.balance() == {"queued": 10}
        wait_until(lambda want=ids: collector.ids()[-10:] == want, "the collector has written all")


@pytest.fixture
def relay(own_collector: MakeCollector) -> Iterator[tuple[Collector, Backend]]:
    """A real collector that passes a backend's answers on."""
    backend = Backend()
    config = Path(__file__).with_name("relay.yaml")
    collector = own_collector(config=config, environment={"BACKEND": backend.http})
    collector.start()
    yield collector, backend
    collector.stop()
    backend.close()


@PROTOCOLS
@pytest.mark.parametrize("code", [429, 503])
def test_refuses_for_now(relay: tuple[Collector, Backend], tmp_path: Path, protocol: str, code: int) -> None:
    """429 and 503, by way of a real collector: tried again until they are taken."""
    collector, backend = relay
    backend.behave = lambda request: Answer(code if len(backend.requests) < 2 else 200)
    reporting = Reporting(getattr(collector, protocol), tmp_path / "journal", exporter__protocol=protocol)
    ids = reporting.emit(50)
    reporting.delivered(50)
    reporting.close()

    assert backend.taken == ids


@PROTOCOLS
@pytest.mark.parametrize("code", [429, 503])
def test_retry_after(tmp_path: Path, protocol: str, code: int) -> None:
    """Not before the time that the answer asks for (a collector does not pass it on)."""
    backend = Backend()
    backend.behave = lambda request: Answer(code, retry_after_s=1) if len(backend.requests) < 2 else Answer()
    options = {"exporter__protocol": protocol}
    reporting = Reporting(getattr(backend, protocol), tmp_path / "journal", start=False, **options)
    ids = reporting.emit(50)
    reporting.registry.start()
    reporting.delivered(50)
    reporting.close()
    backend.close()
    times = [request.at for request in backend.requests]

    assert backend.taken == ids
    assert all(later - earlier >= 1 for earlier, later in itertools.pairwise(times))


@PROTOCOLS
def test_poison_records(relay: tuple[Collector, Backend], tmp_path: Path, protocol: str) -> None:
    """A record that makes the whole request a bad one is found, put aside with its reason, and counted."""
    collector, backend = relay
    poison = {"e0000007", "e0000123", "e0000124"}
    backend.behave = lambda request: Answer(400 if poison & set(request.ids) else 200)
    endpoint = getattr(collector, protocol)
    reporting = Reporting(endpoint, tmp_path / "journal", start=False, exporter__protocol=protocol)
    ids = reporting.emit(300)
    reporting.registry.start()
    reporting.delivered(297)
    reporting.close()
    (file,) = (tmp_path / "journal").rglob("refused.jsonl")
    letters = [json.loads(line) for line in file.read_text().splitlines()]

    assert backend.taken == [event_id for event_id in ids if event_id not in poison]
    assert reporting.balance() == {"reported": 297, "refused": 3, "queued": 0}
    assert poison == {
        pair["value"]["stringValue"]
        for letter in letters
        for pair in letter["record"]["attributes"]
        if pair["key"] == "event.id"
    }
    assert all("400" in letter["reason"] or "INVALID_ARGUMENT" in letter["reason"] for letter in letters)
    assert len(backend.requests) < 60


@PROTOCOLS
def test_partial_success(tmp_path: Path, protocol: str) -> None:
    """What was refused inside a success is counted and kept for a person; nothing is sent twice."""
    backend = Backend(lambda request: Answer(rejected=2))
    reporting = Reporting(
        getattr(backend, protocol), tmp_path / "journal", start=False, exporter__protocol=protocol
    )
    ids = reporting.emit(10)
    reporting.registry.start()
    reporting.delivered(8)
    reporting.close()
    backend.close()
    (file,) = (tmp_path / "journal").rglob("refused.jsonl")

    assert backend.taken == ids
    assert reporting.balance() == {"reported": 8, "refused": 2, "queued": 0}
    assert file.read_text().count("as told") == 10


def test_a_destination_that_comes_and_goes_does_not_fill_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor one that gives another reason each time."""
    backend = Backend()
    backend.behave = lambda request: Answer(
        503 if len(backend.requests) % 2 else 200, rejected=1, reason=f"reason {len(backend.requests)}"
    )
    reporting = Reporting(backend.http, tmp_path / "journal", exporter__protocol="http")
    for _ in range(15):
        reporting.emit(2)
        reporting.stored()
        wait_until(lambda: not reporting.worker.depth, "they are delivered, or refused")
    reporting.close()
    backend.close()

    assert len(backend.requests) > 25
    assert caplog.text.count("is retrying") == 1
    assert caplog.text.count("delivers again") == 1
    assert caplog.text.count("'otel': the destination refused") == 10


def test_internal_error_is_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record on which the destination breaks stands in the way for some tries only."""
    monkeypatch.setattr("spark_events.runtime.workers.reporter_calls._LONGEST_S", 0.01)
    backend = Backend(lambda request: Answer(500 if "e0000003" in request.ids else 200))
    reporting = Reporting(backend.grpc, tmp_path / "journal", start=False)
    reporting.emit(20)
    reporting.registry.start()
    reporting.delivered(19)
    reporting.close()
    backend.close()

    assert reporting.balance() == {"reported": 19, "refused": 1, "queued": 0}


@pytest.mark.parametrize(
    ("per_second", "timeout"), [(30, "500ms"), pytest.param(1, "5s", marks=pytest.mark.soak)]
)
def test_slow(tmp_path: Path, per_second: int, timeout: str) -> None:
    """A destination of so many records a second gets smaller requests, until they fit its timeout."""
    backend = Backend(lambda request: Answer(delay_s=len(request.ids) / per_second))
    reporting = Reporting(backend.grpc, tmp_path / "journal", start=False, exporter__timeout=timeout)
    ids = reporting.emit(60)
    reporting.registry.start()
    reporting.delivered(60, timeout_s=240)
    reporting.close()
    backend.close()

    assert list(dict.fromkeys(backend.taken)) == ids
    assert reporting.balance() == {"reported": 60, "queued": 0}


def test_large_records_are_split_before_four_mebibytes(own_collector: MakeCollector, tmp_path: Path) -> None:
    """A hundred records of 100 kB go in several requests; one of 5 MB is refused by the collector and put aside."""
    collector = own_collector()
    collector.start()
    reporting = Reporting(collector.grpc, tmp_path / "journal", start=False)
    ids = reporting.emit(50, body="x" * 100_000)
    reporting.emit(1, body="x" * 5_000_000)
    ids += reporting.emit(50, body="x" * 100_000)
    reporting.registry.start()
    reporting.delivered(100)
    reporting.close()

    written(collector, ids)
    assert reporting.balance() == {"reported": 100, "refused": 1, "queued": 0}


def test_the_end_does_not_wait_where_a_journal_keeps_the_rest(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A last try or two, and not one a second until the time is over."""
    reporting = Reporting(f"http://127.0.0.1:{free_port()}", tmp_path)
    reporting.emit(10)
    wait_until(lambda: reporting.worker.stats.retries.count, "it was tried in vain")
    before = reporting.worker.stats.retries.count
    reporting.close(30_000)

    assert reporting.worker.stats.retries.count <= before + 2
    assert f"leaves 10 items in {tmp_path}" in caplog.text


def test_one_destination_away_costs_only_itself(tmp_path: Path) -> None:
    """Of two OTLP reporters one hangs forever; the other has everything, and the end is bounded."""
    hanging, fine = Backend(lambda request: Answer(delay_s=3)), Backend()
    conf = {}
    for name, backend in (("hanging", hanging), ("fine", fine)):
        prefix = f"spark.events.reporter.{name}."
        conf[f"{prefix}factory.class"] = "otlp"
        conf[f"{prefix}exporter.endpoint"] = backend.grpc
        conf[f"{prefix}journal.dir"] = str(tmp_path)
    setups, _ = read_all_setups(conf, ApplicationInfo("app", "app-1"))
    registry = Registry(setups)
    registry.start()
    for number in range(5_000):
        registry.root.add_event(Event.builder("test", "MyEvent").set_id(str(number)))
    by_name = {worker.setup.name: worker for worker in registry.workers}
    wait_until(lambda: by_name["fine"].stats.reported.count == 5_000, "the other has everything")
    registry.close(1_000)
    fine.close()

    assert len(set(fine.taken)) == 5_000
    assert by_name["hanging"].depth == 5_000
    assert by_name["hanging"].stats.dropped == 0


def test_nobody_there_and_no_journal(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Without a journal the end costs what was not delivered, within the time, counted and said."""
    reporting = Reporting(f"http://127.0.0.1:{free_port()}", None)
    reporting.emit(10)
    reporting.close(700)

    assert reporting.balance()["dropped.close"] == 10
    assert "lost 10 items: the destination did not take them" in caplog.text
