"""Queries that resume from a state that is older than what their target has: rows come twice, none is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from spark_events.sql_runner.deploy.decision import Action
from spark_events.sql_runner.host import resuming
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.checkpoints import batches_before, progress, write_batches_before
from spark_events.sql_runner.store.deployed import Meta
from spark_events.sql_runner.store.savepoints import (
    SavepointError,
    all_savepoints,
    find_states,
    make_savepoint,
    restore,
)
from spark_events.sql_runner.store.store import Store
from tests.support.query_shop import HOST, Bench
from tests.support.waiting import wait_until

pytestmark = pytest.mark.extended


@pytest.fixture
def hosted(bench: Bench) -> Iterator[Bench]:
    with bench.hosting():
        yield bench


def read_at_once(bench: Bench) -> None:
    """Let the source give all its files in one micro-batch; that is not a change of a query."""
    bench.shop.definitions = bench.shop.definitions.replace("= '1'", "= '100'")
    bench.define("")


def rolled_back(bench: Bench) -> str:
    """Take a savepoint of batch 0, run on to batch 4, and remove every later state; return the savepoint."""
    bench.shop.order(1)
    bench.deploy(bench.shop.manifest())
    bench.wait_batch(0)
    savepoint = bench.stop("cheap", savepoint=True).savepoint
    bench.shop.order(4)
    bench.deploy(bench.shop.manifest())
    bench.shop.wait_ids(bench.shop.cheap_ids())
    bench.stop("cheap")
    bench.store.delete(bench.meta().checkpoint)
    read_at_once(bench)
    bench.shop.order(1)
    return savepoint


@pytest.mark.spark
class TestFiles:
    def test_an_older_savepoint_loses_no_row(self, hosted: Bench) -> None:
        """Spark alone would take its next micro-batches, 1 to 4, for those that the folder's log has."""
        savepoint = rolled_back(hosted)
        shop = hosted.shop

        (planned,) = hosted.plan(shop.manifest())
        (result,) = hosted.deploy(shop.manifest())

        assert planned.decision.reason.startswith(f"it is stopped; there is savepoint {savepoint}, batch 0; ")
        assert "out has 4 later micro-batches: their rows are written again" in planned.decision.reason
        assert (result.action, result.failed) == (Action.RESUME, False)
        once, twice = shop.cheap_ids()[:5] + shop.cheap_ids()[-5:], shop.cheap_ids()[5:-5]
        shop.wait_ids(sorted([*once, *twice, *twice]))
        # It goes on in these numbers, also after a restart.
        hosted.deploy(shop.manifest(trigger={"processing-time": "200 milliseconds"}))
        shop.order(1)
        shop.wait_ids(sorted([*shop.cheap_ids(), *twice]))

    def test_a_version_that_failed_after_it_wrote_takes_no_number_of_the_one_before(
        self, hosted: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from spark_events.sql_runner.deploy import host_link

        shop = hosted.shop
        shop.order(1)
        hosted.deploy(shop.manifest())
        shop.wait_ids(shop.cheap_ids())
        other = shop.manifest(sql=f"SELECT id, price FROM {shop.prefix}orders WHERE price < 4")
        real = host_link.HostLink.wait_started

        def fails_late(link: Any, name: str, order: Any, timeout_s: float) -> Any:
            status = real(link, name, order, timeout_s)
            if order.deployed["meta"]["query-version"] == 2:
                wait_until(lambda: shop.ids(version=2), "version 2 has written")
                raise host_link.DeploymentError("too late")
            return status

        monkeypatch.setattr(host_link.HostLink, "wait_started", fails_late)
        (failed,) = hosted.deploy(other)
        assert failed.failed
        hosted.stop("cheap")
        (back,) = hosted.deploy(shop.manifest())
        shop.order(2)

        assert not back.failed, back
        version = hosted.meta().query_version
        wait_until(lambda: shop.ids(version=version) == shop.cheap_ids(), "every row is there")

    def test_a_folder_that_is_away_for_a_while(self, hosted: Bench) -> None:
        """Numbers that begin anew there would be those of batches that it has, once it is back."""
        shop = hosted.shop
        shop.order(2)
        hosted.deploy(shop.manifest())
        shop.wait_ids(shop.cheap_ids())
        hosted.stop("cheap")
        (shop.folder / "out").rename(shop.folder / "away")
        shop.order(1)

        (planned,) = hosted.plan(shop.manifest())
        (result,) = hosted.deploy(shop.manifest())

        assert "out no longer has micro-batches 0 to 1: it will not start" in planned.decision.reason
        assert result.failed
        assert "bring it back, or start with a clean state" in result.text
        assert shop.rows() == []
        shop.order(1)
        (shop.folder / "away").rename(shop.folder / "out")
        hosted.deploy(shop.manifest())
        shop.wait_ids(shop.cheap_ids())


@pytest.mark.spark
@pytest.mark.parametrize("version", [1, 2])
def test_a_batch_with_state_that_was_written_but_not_committed(bench: Bench, version: int) -> None:
    """Its application was killed in between; Spark's log drops the batch, and so nothing changes the state."""
    shop = bench.shop
    code = f"execution_output = spark.readStream.table('{shop.prefix}orders').select('id', 'price')"
    with bench.hosting():
        for number in range(version):
            shop.order(1)
            more = f".where('price < 5 AND id > -{number + 1}').dropDuplicates(['id'])"
            bench.deploy(shop.manifest(code=code + more))
            shop.wait_ids(shop.cheap_ids(), version=number + 1)
    checkpoint = bench.meta().checkpoint
    last = progress(bench.store, checkpoint).committed
    bench.store.delete(f"{checkpoint}/commits/{last}")
    bench.store.delete(f"{checkpoint}/commits/.{last}.crc")
    shop.order(1)
    with bench.hosting():
        shop.wait_ids(shop.cheap_ids(), version=version)
        row = bench.status()
        assert (row.restarts, row.error) == (0, "")


@pytest.mark.spark
class TestLostState:
    def test_a_checkpoint_that_went_while_the_application_was_away(self, bench: Bench) -> None:
        """Spark would begin anew, without the state, and without a word."""
        shop = bench.shop
        shop.order(2)
        with bench.hosting():
            bench.deploy(shop.manifest())
            bench.wait_batch(1)
            savepoint = bench.deploy(shop.manifest(trigger={"processing-time": "100 milliseconds"}))[
                0
            ].savepoint
        bench.store.delete(bench.meta().checkpoint)
        with bench.hosting():
            failed = bench.wait_state("FAILED")

            assert failed.error.startswith(f"checkpoint {bench.meta().checkpoint} is gone: ")
            assert failed.restarts == 0
            (planned,) = bench.plan(shop.manifest(trigger={"processing-time": "100 milliseconds"}))
            assert f"there is savepoint {savepoint}, batch 1" in planned.decision.reason
            assert f"checkpoint {bench.meta().checkpoint} is gone" in planned.decision.reason
            bench.deploy(shop.manifest(trigger={"processing-time": "100 milliseconds"}))
            shop.order(1)
            shop.wait_ids(shop.cheap_ids())

    def test_a_failed_version_gives_way_to_an_older_state_and_says_so(self, bench: Bench) -> None:
        shop = bench.shop
        shop.order(1)
        with bench.hosting():
            bench.deploy(shop.manifest())
            bench.wait_batch(0)
            savepoint = bench.stop("cheap", savepoint=True).savepoint
            bench.deploy(shop.manifest())
            saved = shop.cheap_ids()
            shop.order(1)
            shop.wait_ids(shop.cheap_ids())
        later = sorted(set(shop.cheap_ids()) - set(saved))
        bench.store.delete(bench.meta().checkpoint)
        with bench.hosting():
            bench.wait_state("FAILED")
            sql = f"SELECT id, raise_error('no such price') + price AS price FROM {shop.prefix}orders"
            (result,) = bench.deploy(shop.manifest(sql=sql))

            assert result.failed
            assert "version 1 runs again as it was deployed, from savepoint" in result.text
            assert f"{savepoint}, batch 0; what it has written since comes twice" in result.text
            shop.wait_ids(sorted([*saved, *later, *later]))

    def test_a_savepoint_of_what_is_gone_is_none(self, hosted: Bench) -> None:
        hosted.shop.order(1)
        hosted.deploy(hosted.shop.manifest())
        hosted.wait_batch(0)
        hosted.store.delete(hosted.meta().checkpoint)

        result = hosted.stop("cheap", savepoint=True)

        assert result.failed
        assert "there is no savepoint" in result.text
        assert all_savepoints(hosted.store, "cheap", 1) == []

    def test_nothing_was_read_yet(self, hosted: Bench) -> None:
        """Such a query has no offsets, but its checkpoint is a state all the same."""
        hosted.deploy(hosted.shop.manifest())
        hosted.stop("cheap")

        (result,) = hosted.deploy(hosted.shop.manifest())

        assert (result.action, result.failed) == (Action.RESUME, False), result.text
        hosted.shop.order(1)
        hosted.shop.wait_ids(hosted.shop.cheap_ids())


META = Meta("id", 1, "2026-01-01 00:00:00", "checkpoints/q/1/a", HOST, "d", "plan", "4.3.0")


def checkpoint_at(
    store: Store, committed: int, begun: int | None = None, folder: str = META.checkpoint
) -> None:
    store.write(f"{folder}/metadata", b'{"id":"id"}')
    for batch in range((committed if begun is None else begun) + 1):
        store.write(f"{folder}/offsets/{batch}", b"v1\n{}")
    for batch in range(committed + 1):
        store.write(f"{folder}/commits/{batch}", b"v1\n{}")


class TestSavepoints:
    def savepoints(self, store: Store) -> tuple[str, str]:
        """Make one of batch 1, and one of batch 3; return their folders, and lose the checkpoint."""
        checkpoint_at(store, 1)
        older = make_savepoint(store, "q", META, "older").path
        checkpoint_at(store, 3)
        newer = make_savepoint(store, "q", META, "newer").path
        store.delete(META.checkpoint)
        return older, newer

    @pytest.mark.parametrize(
        ("file", "content", "told"),
        [
            ("offsets/2", b"v1\n{]", "is damaged: offsets/2 changed after it was made"),
            ("offsets/2", None, "is damaged: it was 9 files of "),
            ("_metadata", None, "has no readable _metadata, so it is not complete"),
            ("_metadata", b"{", "has no readable _metadata, so it is not complete"),
        ],
    )
    def test_the_next_older_one_is_taken(
        self, store: Store, file: str, content: bytes | None, told: str
    ) -> None:
        older, newer = self.savepoints(store)
        store.delete(f"{newer}/{file}") if content is None else store.write(f"{newer}/{file}", content)

        found = find_states(store, "q", META)

        assert found.latest is not None
        assert (found.latest.path, found.latest.batch) == (older, 1)
        assert found.passed_over[0] == f"checkpoint {META.checkpoint} is gone"
        assert found.passed_over[1].startswith(f"savepoint {newer} {told}")
        with pytest.raises(SavepointError, match=f"savepoint {newer} "):
            restore(store, "q", 1, newer, "other")
        assert store.names("checkpoints/q/1") == []

    def test_one_that_is_not_needed_is_not_read(self, store: Store) -> None:
        _, newer = self.savepoints(store)
        store.write(f"{newer}/offsets/2", b"v1\n{]")
        checkpoint_at(store, 3)

        assert find_states(store, "q", META).passed_over == ()

    def test_one_of_an_older_version_has_no_checksums(self, store: Store) -> None:
        _, newer = self.savepoints(store)
        data = store.read(f"{newer}/_metadata")
        assert data is not None
        store.write(f"{newer}/_metadata", data.partition(b',"checksums"')[0] + b"}")

        assert [each.checksums for each in all_savepoints(store, "q", 1)][-1] == {}
        found = find_states(store, "q", META).latest
        assert found is not None
        assert found.path == newer

    @pytest.mark.parametrize(
        ("file", "content", "told"),
        [
            ("metadata", None, "has no file metadata"),
            ("metadata", b"", "has a damaged file metadata"),
            ("offsets/3", b"", "has a damaged file offsets/3"),
            ("commits/3", b"", "has a damaged file commits/3"),
            ("offsets/3", None, "has no offsets/3, though it has commits/3"),
        ],
    )
    def test_a_checkpoint_that_is_not_whole(
        self, store: Store, file: str, content: bytes | None, told: str
    ) -> None:
        """As after a power failure; a savepoint is not made of it."""
        _, newer = self.savepoints(store)
        checkpoint_at(store, 3)
        path = f"{META.checkpoint}/{file}"
        store.delete(path) if content is None else store.write(path, content)

        found = find_states(store, "q", META)

        assert found.passed_over == (f"checkpoint {META.checkpoint} {told}",)
        assert found.latest is not None
        assert found.latest.path == newer
        with pytest.raises(SavepointError, match="there is no savepoint: checkpoint"):
            make_savepoint(store, "q", META, "third")


class TestNumbers:
    """Which numbers micro-batches get in the log of a folder, by the checkpoint and the log's last."""

    def numbered(self, store: Store, last: int, checkpoint: str = META.checkpoint) -> int:
        return resuming._numbered("/out", checkpoint, progress(store, checkpoint), last, store)

    def test_what_was_broken_off_keeps_its_number(self, store: Store) -> None:
        checkpoint_at(store, -1)
        assert self.numbered(store, 6) == 7
        checkpoint_at(store, 2, begun=3)

        assert self.numbered(store, 2 + 7) == 7
        assert self.numbered(store, 3 + 7) == 7, "it is in the log"

    @pytest.mark.parametrize("last", [4, 9])
    def test_after_any_later_one_they_follow_it(self, store: Store, last: int) -> None:
        checkpoint_at(store, 2, begun=3)
        write_batches_before(store, META.checkpoint, 0)

        before = self.numbered(store, last)

        assert before == last - 2
        assert batches_before(store, META.checkpoint) == before

    def test_a_log_that_is_behind(self, store: Store) -> None:
        checkpoint_at(store, 2)
        write_batches_before(store, META.checkpoint, 0)

        with pytest.raises(resuming.TargetBehind, match="its log ends with 1, the checkpoint with 2"):
            self.numbered(store, 1)
        assert batches_before(store, META.checkpoint) == 0

    def test_a_number_that_another_query_has_used(self, store: Store) -> None:
        """Batch 3 is in the log, but it is not this one."""
        checkpoint_at(store, 2, begun=3)
        write_batches_before(store, META.checkpoint, 0)
        self.numbered(store, 2)
        checkpoint_at(store, 2, folder="checkpoints/q/2/b")
        write_batches_before(store, "checkpoints/q/2/b", 0)
        assert self.numbered(store, 2, "checkpoints/q/2/b") == 0

        assert self.numbered(store, 3) == 1
        assert self.numbered(store, 4) == 1, "now it is"

    def test_what_was_broken_off_before_another_query_came_that_wrote_nothing(self, store: Store) -> None:
        """Two bad versions after it, each of which claims the folder, and fails in its first micro-batch."""
        checkpoint_at(store, 2, begun=3)
        write_batches_before(store, META.checkpoint, 0)
        self.numbered(store, 2)
        for bad in ("b", "c"):
            checkpoint_at(store, -1, begun=0, folder=f"checkpoints/q/2/{bad}")
            assert self.numbered(store, 3, f"checkpoints/q/2/{bad}") == 4

        assert self.numbered(store, 3) == 0, "it wrote batch 3 itself"

    def test_a_claim_that_was_damaged(self, store: Store) -> None:
        checkpoint_at(store, 2, begun=3)
        write_batches_before(store, META.checkpoint, 0)
        self.numbered(store, 2)
        for content in (b"\xff", b"[1]", b'{"over": 3}', b'{"over": {"last": 3}}'):
            store.write(layout.target("/out"), content)

            assert self.numbered(store, 2) == 0
            assert self.numbered(store, 3) == 0

    def test_an_older_content_of_the_same_checkpoint(self, store: Store) -> None:
        """As somebody puts it there by hand, once more after it was numbered anew."""
        checkpoint_at(store, 1)
        write_batches_before(store, META.checkpoint, 0)
        assert self.numbered(store, 2) == 1
        checkpoint_at(store, 2, begun=3)
        write_batches_before(store, META.checkpoint, 0)

        assert self.numbered(store, 3) == 1
