"""One writer per folder, held against everything that the store wants to run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from spark_events.sql_runner.deploy.decision import Action
from spark_events.sql_runner.deploy.host_link import HostLink
from spark_events.sql_runner.deploy.waiting import Waiting
from spark_events.sql_runner.deploy.writers import FolderClaim, Refusal, Settled, settle
from spark_events.sql_runner.store.deployed import read_deployed, write_deployed
from spark_events.sql_runner.store.host_files import RUN, STOP, Order
from spark_events.sql_runner.store.layout import new_id
from tests.support.query_shop import Bench

pytestmark = pytest.mark.extended


def claim(name: str, now: str, after: str) -> FolderClaim:
    return FolderClaim(name, now, after, refusable=True)


def test_who_is_in_a_folder_comes_first() -> None:
    assert settle([claim("a", "", "x"), claim("b", "x", "x")]) == Settled({"a": Refusal("x", "b")}, {})
    assert settle([claim("b", "", "x"), claim("a", "", "x")]) == Settled({"b": Refusal("x", "a")}, {})


def test_who_leaves_goes_first() -> None:
    assert settle([claim("a", "", "x"), claim("b", "x", "y")]) == Settled({}, {"a": ("b",)})


def test_who_has_to_stay_is_counted_on_no_more() -> None:
    """As ``c`` has y, ``b`` stays in x, and so ``a`` cannot come."""
    kept = FolderClaim("c", "y", "y", refusable=False)
    settled = settle([claim("a", "", "x"), claim("b", "x", "y"), kept])

    assert settled == Settled({"b": Refusal("y", "c"), "a": Refusal("x", "b")}, {})


def test_queries_that_exchange_their_folders_are_refused() -> None:
    settled = settle([claim("a", "x", "y"), claim("b", "y", "x")])

    assert len(settled.refused) == 2
    assert any(refusal.in_a_ring for refusal in settled.refused.values())


def test_queries_without_a_folder_write_as_they_like() -> None:
    assert settle([claim("a", "", ""), claim("b", "", "")]) == Settled({}, {})


@pytest.fixture
def hosted(bench: Bench) -> Iterator[Bench]:
    with bench.hosting():
        yield bench


def ids_of(bench: Bench, name: str) -> list[int]:
    return sorted(row["id"] for row in bench.shop.rows() if row["__query_name"] == name)


@pytest.mark.spark
class TestDeployments:
    def test_a_renamed_query_starts_when_the_old_one_has_stopped(
        self, hosted: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shop = hosted.shop
        shop.order(3)
        hosted.deploy(shop.manifest("old"))
        shop.wait_ids(shop.cheap_ids())
        seen: list[str] = []
        real = HostLink.give

        def give(link: HostLink, name: str, order: Order | None) -> None:
            if name == "new" and order is not None and order.action == RUN:
                seen.append(hosted.status("old").state)
            real(link, name, order)

        monkeypatch.setattr(HostLink, "give", give)
        results = hosted.deploy(shop.manifest("new"), prune=True)

        assert [(result.action, result.failed) for result in results] == [
            (Action.START, False),
            (Action.STOP, False),
        ]
        assert seen == ["CANCELED"]
        shop.order(2)
        shop.wait_ids(sorted([*shop.cheap_ids(), *ids_of(hosted, "old")]))
        assert ids_of(hosted, "new") == shop.cheap_ids()
        assert hosted.status("new").restarts == 0

    def test_a_second_manifest_for_a_folder_is_refused(self, hosted: Bench) -> None:
        shop = hosted.shop
        shop.order(1)
        hosted.deploy(shop.manifest("first"))

        (refused,) = hosted.deploy(shop.manifest("second"))

        assert (refused.action, refused.failed) == (Action.FAIL, True)
        assert "which 'first' writes to as well" in refused.text
        assert "stop it with `spark-events sql stop first`" in refused.text
        hosted.stop("first")
        (started,) = hosted.deploy(shop.manifest("second"))
        assert (started.action, started.failed) == (Action.START, False), started.text

    def test_an_order_to_stop_that_is_about_to_be_seen_is_waited_for(self, hosted: Bench) -> None:
        """As after a restart of the application, which first has to look at its orders."""
        hosted.deploy(hosted.shop.manifest("first"))
        found = read_deployed(hosted.store, "first")
        assert found is not None
        link = HostLink(hosted.store, found.meta.host, lambda: None, Waiting())
        link.give("first", Order(new_id(), STOP, found.values()))

        (planned,) = hosted.plan(hosted.shop.manifest("second"))

        assert planned.decision.action is Action.START, planned.decision.reason

    def test_so_it_is_for_one_whose_application_is_away(self, bench: Bench) -> None:
        with bench.hosting():
            bench.deploy(bench.shop.manifest("first"))

        (planned,) = bench.plan(bench.shop.manifest("second"))

        assert planned.decision.action is Action.FAIL
        assert "which 'first' writes to as well" in planned.decision.reason

    def test_so_it_is_for_one_that_an_older_spark_events_has_deployed(self, hosted: Bench) -> None:
        from dataclasses import replace

        hosted.deploy(hosted.shop.manifest("first"))
        found = read_deployed(hosted.store, "first")
        assert found is not None
        write_deployed(hosted.store, replace(found, meta=replace(found.meta, sink_folder=None)))

        (planned,) = hosted.plan(hosted.shop.manifest("second"))

        assert planned.decision.action is Action.FAIL
        hosted.deploy(hosted.shop.manifest("first"))
        assert hosted.meta("first").sink_folder.endswith("/out"), "from now on it is recorded"

    def test_a_folder_is_handed_over(self, hosted: Bench) -> None:
        """The first query goes to another table, whatever the order of their names."""
        shop = hosted.shop
        shop.order(1)
        hosted.deploy(shop.manifest("z"))
        shop.wait_ids(shop.cheap_ids())

        results = hosted.deploy(shop.manifest("a"), shop.manifest("z", target_table=f"{shop.prefix}other"))

        assert [(each.name, each.action, each.failed) for each in results] == [
            ("a", Action.START, False),
            ("z", Action.REPLACE, False),
        ]
        assert hosted.status("a").restarts == 0
        shop.wait_ids(sorted(shop.cheap_ids() * 2))

    def test_a_folder_that_is_not_left_is_not_handed_over(self, hosted: Bench) -> None:
        shop = hosted.shop
        shop.order(1)
        hosted.deploy(shop.manifest("z"))
        shop.wait_ids(shop.cheap_ids())
        bad: dict[str, Any] = shop.manifest(
            "z",
            target_table=f"{shop.prefix}other",
            sql=f"SELECT id, raise_error('no such price') + price AS price FROM {shop.prefix}orders",
        )

        waits, fails = hosted.deploy(shop.manifest("a"), bad)

        assert fails.failed
        assert "version 1 runs again as it was deployed" in fails.text
        assert waits.failed
        assert waits.text.startswith("'z' still writes into ")
        assert read_deployed(hosted.store, "a") is None
