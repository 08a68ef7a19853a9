"""What status tells: progress and restarts, and when it cannot be trusted."""

from __future__ import annotations

import errno
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from spark_events.cli.sql import views
from spark_events.sql_runner.deploy.host_link import HostLink
from spark_events.sql_runner.deploy.query_row import QueryRow
from spark_events.sql_runner.host.progress import figures
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.host_files import (
    HostStatus,
    QueryStatus,
    read_status,
    write_orders,
    write_status,
)
from spark_events.sql_runner.store.lease import Lease
from spark_events.sql_runner.store.starting import mark_starting
from spark_events.sql_runner.store.store import Store, StoreError
from tests.support.query_shop import HOST, Bench
from tests.support.small_disk import Disk
from tests.support.sql_orders import deployed_in, run_order
from tests.support.waiting import wait_until

T0 = 1_763_980_000_000
KAFKA = {
    "timestamp": "2026-11-24T10:00:00.000Z",
    "batchId": 5,
    "inputRowsPerSecond": 12.5,
    "eventTime": {"watermark": "2026-11-24T09:59:00.000Z"},
    "sources": [
        {"endOffset": '{"t":{"0":5,"1":7}}', "latestOffset": '{"t":{"0":9,"1":7}}'},
        {"endOffset": '{"logOffset":1}', "latestOffset": None},
    ],
}


def test_the_figures_of_a_progress() -> None:
    assert figures(KAFKA, 1_795_514_400_000) == {
        "progress_ms": 1_795_514_400_000,
        "input_rate": 12.5,
        "behind": 4,
        "watermark_lag_ms": 60_000,
    }
    idle = {**KAFKA, "inputRowsPerSecond": float("nan"), "eventTime": {}, "sources": []}
    assert figures(idle, 1_795_514_400_000) == {
        "progress_ms": 1_795_514_400_000,
        "input_rate": 0.0,
        "behind": None,
        "watermark_lag_ms": None,
    }


def shown(*rows: QueryRow, width: int = 160) -> list[str]:
    console = Console(width=width, record=True, file=io.StringIO())
    views.show_status(rows, console)
    return console.export_text().splitlines()


def row(name: str, **values: Any) -> QueryRow:
    given = {"state": "RUNNING", "wanted": True, "version": 1, "application": "s", "since_ms": T0, "batch": 5}
    return QueryRow(name, **{**given, "batch_ms": T0, **values})


def test_status_shows_rates_lag_and_restarts() -> None:
    kafka = row("a", restarts=7, input_rate=1234.5, behind=4_000, restarted_ms=(T0, T0 - 60_000))
    files = row("b", input_rate=0.0, watermark_lag_ms=90_000)

    head, first, second, restarts = shown(kafka, files)

    assert head.split()[-3:] == ["rows/s", "behind", "restarts"]
    assert first.split()[-3:] == ["1,234", "4,000", "7"]
    assert second.split()[-6:] == ["0", "1", "min", "30", "s", "0"]
    assert restarts == "a: restarted at 2025-11-24 10:26:40, 2025-11-24 10:25:40, … UTC"
    assert "rows/s" not in shown(row("a"))[0]


def test_it_fits_a_terminal() -> None:
    name = "expensive-orders-of-2026"
    long = row(name, state="RESTARTING", batch=12_345, restarts=7, input_rate=1234.5, behind=4_000_000)

    assert any(line.startswith(f"{name}  RESTARTING") for line in shown(long, width=80))


@pytest.mark.spark
class TestRunning:
    @pytest.fixture
    def hosted(self, bench: Bench) -> Iterator[Bench]:
        with bench.hosting():
            bench.shop.order(1)
            bench.deploy(bench.shop.manifest())
            bench.shop.wait_ids(bench.shop.cheap_ids())
            yield bench

    def test_a_query_that_runs_has_them(self, hosted: Bench) -> None:
        row = wait_until(lambda: (row := hosted.status()).progress_ms and row, "Spark has reported")

        assert row.input_rate is not None
        assert row.restarted_ms == ()

    def test_restarts_are_kept_with_their_times_also_over_its_application(self, bench: Bench) -> None:
        shop = bench.shop
        with bench.hosting():
            shop.order(1)
            bench.deploy(shop.manifest())
            shop.wait_ids(shop.cheap_ids())
            (shop.folder / "out").rename(shop.folder / "away")
            (shop.folder / "out").write_text("no folder")
            shop.order(1)
            wait_until(lambda: len(bench.status().restarted_ms) >= 2, "it was restarted twice")
            (shop.folder / "out").unlink()
            (shop.folder / "away").rename(shop.folder / "out")
            shop.wait_ids(shop.cheap_ids())
            row = bench.status()
        assert list(row.restarted_ms) == sorted(row.restarted_ms, reverse=True)
        assert row.restarts == len(row.restarted_ms) >= 2
        with bench.hosting():
            bench.wait_state("RUNNING")

            again = bench.status()
            assert (again.restarts, again.restarted_ms) == (row.restarts, row.restarted_ms)

    def test_what_was_stopped_is_told_as_before_also_by_another_application(self, bench: Bench) -> None:
        with bench.hosting():
            bench.shop.order(1)
            bench.deploy(bench.shop.manifest())
            bench.wait_batch(0)
            bench.stop("cheap", savepoint=True)
            stopped = bench.wait_state("CANCELED")
        savepoints = bench.shop.folder / "store" / layout.savepoints("cheap")
        kept = sorted(savepoints.rglob("*"))
        begun_ms = _started_ms(bench)
        with bench.hosting():
            wait_until(lambda: _started_ms(bench) > begun_ms, "the other application has read its orders")
            again = bench.wait_state("CANCELED")
        assert (again.since_ms, again.batch, again.batch_ms) == (stopped.since_ms, 0, stopped.batch_ms)
        assert sorted(savepoints.rglob("*")) == kept


def _started_ms(bench: Bench) -> int:
    status = read_status(bench.store, bench.host)
    assert status is not None
    return status.started_ms


def running(store: Store, beat_ms_ago: int = 0) -> QueryRow:
    """Return the row of a query whose application was last heard so long ago."""
    from spark_events.api.event import now_ms
    from spark_events.sql_runner.deploy.snapshot import Snapshot

    deployed = deployed_in("session-a")
    order = run_order(deployed)
    write_orders(store, "session-a", {"q": order})
    status = QueryStatus(order.id, "RUNNING", T0, started=True)
    write_status(store, "session-a", HostStatus("app", "local", T0, "4.3.0", {"q": status}))
    lease = Lease(store, layout.host_lease("session-a"), "", 30_000, lambda: now_ms() - beat_ms_ago)
    lease.take()
    return QueryRow.of(Snapshot(store).query("q", "session-a"))


def test_an_application_that_is_overdue_is_silent(store: Store) -> None:
    row = running(store, 25_000)

    assert (row.state, row.is_well, row.since_ms) == ("SILENT", False, None)
    assert "session 'a' has given no sign of life for 25" in row.error
    assert "may be out of date" in row.error


def test_an_application_that_has_missed_no_sign_of_life_is_not(store: Store) -> None:
    row = running(store, 12_000)
    assert (row.state, row.since_ms) == ("RUNNING", T0)


class FullStore(Store):
    """Has no space left: a write begins, and fails."""

    def fill(self, error: OSError) -> None:
        real = self._fs.pipe_file

        def pipe_file(path: str, data: bytes, **options: Any) -> None:
            real(path, data[:1], **options)
            raise error

        self._fs.pipe_file = pipe_file

    def empty(self) -> None:
        del self._fs.pipe_file


@pytest.fixture
def full(tmp_path: Path) -> Iterator[FullStore]:
    store = FullStore(str(tmp_path / "store"))
    store.write("a/b", b"old")
    store.fill(OSError(errno.ENOSPC, "No space left on device"))
    yield store
    if "pipe_file" in vars(store._fs):
        store.empty()


def test_a_write_that_fails_leaves_nothing(full: FullStore) -> None:
    with pytest.raises(StoreError, match="No space left on device"):
        full.write("a/b", b"new")
    with pytest.raises(StoreError, match="No space left on device"):
        full.create("a/c", b"new")

    assert list(full.sizes("")) == ["a/b"]
    assert full.read("a/b") == b"old"


def test_a_full_store_is_said_to_be(full: FullStore) -> None:
    assert "No space left on device" in full.write_problem()
    full.empty()
    assert full.write_problem() == ""
    assert list(full.sizes("")) == ["a/b"]


def test_a_real_disk_that_is_full_is_said_to_be(tmp_path: Path) -> None:
    """An empty file fits on a disk that has no room for a byte."""
    disk = Disk(tmp_path / "disk")
    if not disk.mounted:
        pytest.skip("only root may mount a small disk")
    try:
        store = Store(str(tmp_path / "disk" / "store"))
        store.write("a/b", b"old")
        with disk.full():
            assert "No space left on device" in store.write_problem()
        assert store.write_problem() == ""
        assert store.names("locks") == []
    finally:
        disk.close()


def test_who_may_only_read_is_told_nothing(full: FullStore) -> None:
    full.empty()
    full.fill(PermissionError(errno.EACCES, "Permission denied"))

    assert full.write_problem() == ""


def test_what_killed_writers_have_left_is_swept(store: Store) -> None:
    from spark_events.api.event import now_ms

    old, young = now_ms() - 25 * 3_600_000, now_ms()
    for name in ("b", f"b.{old:x}-12345678~made", f"b.{young:x}-12345678~made", "b.1a2b3c4d~made"):
        (Path(store.url) / "a" / "sub").mkdir(parents=True, exist_ok=True)
        (Path(store.url) / "a" / name).write_text("x")

    store.sweep("a")

    assert sorted(store.sizes("a")) == ["b", f"b.{young:x}-12345678~made"]


def test_a_session_that_is_starting_is_neither_gone_nor_unknown(store: Store) -> None:
    from spark_events.sql_runner.deploy.placement import Placement
    from spark_events.sql_runner.deploy.snapshot import Snapshot
    from spark_events.sql_runner.deploy.workspace import Workspace

    deployed = deployed_in(HOST)
    write_orders(store, HOST, {"q": run_order(deployed)})
    workspace = Workspace(store.url, Placement())
    assert QueryRow.of(Snapshot(store).query("q", HOST)).state == "GONE"

    mark_starting(store, HOST)

    query = Snapshot(store).query("q", HOST)
    row = QueryRow.of(query)
    assert (row.state, row.is_well, query.running) == ("CREATED", True, True)
    assert [link.host for link in workspace.demand_sessions({HOST})] == [HOST]


@pytest.mark.parametrize("recovered", [False, True])
def test_why_a_query_failed_is_known_after_its_session_is_gone(store: Store, recovered: bool) -> None:
    from spark_events.sql_runner.deploy.snapshot import Snapshot

    order = run_order(deployed_in(HOST))
    write_orders(store, HOST, {"q": order})
    failed = QueryStatus(order.id, "FAILED", T0, error="no price", error_ms=T0, recovered=recovered)
    write_status(store, HOST, HostStatus("app-1", "local", T0, "4", {"q": failed}))

    row = QueryRow.of(Snapshot(store).query("q", HOST))
    assert row.state == "GONE"
    assert "sends no more signs of life" in row.error
    assert row.error.endswith("; before that, the query failed: no price") is not recovered


@pytest.mark.parametrize(
    ("before", "after", "is_well"),
    [("RUNNING", "ENDED", True), ("RESTARTING", "ENDED", True), ("FAILED", "FAILED", False)],
)
def test_a_query_that_failed_before_its_session_ended_stays_so(
    store: Store, before: str, after: str, is_well: bool
) -> None:
    from spark_events.sql_runner.deploy.snapshot import Snapshot

    order = run_order(deployed_in(HOST))
    write_orders(store, HOST, {"q": order})
    status = QueryStatus(order.id, before, T0, error="no checkpoint", error_ms=T0)
    write_status(store, HOST, HostStatus("app-1", "local", T0, "4", {"q": status}))
    store.write(layout.ended(HOST), b"{}")

    row = QueryRow.of(Snapshot(store).query("q", HOST))
    assert (row.state, row.is_well, row.since_ms) == (after, is_well, T0)
    assert "no checkpoint" in row.error
    assert "has ended; its queries start again when it does" in row.error


@pytest.mark.parametrize("change", [{"at_ms": 5}, {"owner": {"pid": 1}}, {"owner": None}])
def test_a_session_that_began_to_start_long_ago_does_not(store: Store, change: dict[str, Any]) -> None:
    mark_starting(store, HOST)
    values = json.loads(store.read(layout.starting(HOST)) or b"")
    store.write(layout.starting(HOST), json.dumps({**values, **change}).encode())

    assert not HostLink(store, HOST).is_starting


def test_a_session_whose_starter_was_killed_is_not_starting(store: Store) -> None:
    mark_starting(store, HOST)
    values = json.loads(store.read(layout.starting(HOST)) or b"")
    values["owner"]["started"] = "1"
    store.write(layout.starting(HOST), json.dumps(values).encode())

    assert not HostLink(store, HOST).is_starting


@pytest.mark.parametrize(("function", "is_starting"), [("mark_submitted", True), ("mark_starting", False)])
def test_a_session_whose_submitter_has_ended(store: Store, function: str, is_starting: bool) -> None:
    """Where spark-submit does not wait for its application, that is on its way to its cluster."""
    program = (
        f"from spark_events.sql_runner.store.starting import {function}\n"
        "from spark_events.sql_runner.store.store import Store\n"
        f"{function}(Store({store.url!r}), {HOST!r})"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert HostLink(store, HOST).is_starting == is_starting
