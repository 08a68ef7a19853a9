"""The store: files that are whole, folders that are copied, what only one can create."""

from __future__ import annotations

import socket
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fsspec.config import conf as fsspec_conf

from spark_events.api import ConfigError
from spark_events.spark import file_systems
from spark_events.spark.file_systems import WEBHDFS
from spark_events.sql_runner.store.store import Store, StoreError
from tests.support.raw_http import raw_http
from tests.support.servers import Hdfs
from tests.support.waiting import free_port


@pytest.fixture(params=["local", "file URL", "S3", pytest.param("HDFS", marks=pytest.mark.extended)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "HDFS":
        return Store(f"{request.getfixturevalue('hdfs').url}/queries/{uuid.uuid4().hex}")
    if request.param == "S3":
        request.getfixturevalue("s3")
        return Store(f"s3a://queries/{uuid.uuid4().hex}")
    return Store(str(tmp_path / "store") if request.param == "local" else f"file://{tmp_path}/store")


def test_a_file_is_what_was_written_last(store: Store) -> None:
    store.check()
    assert store.read("a/b.yaml") is None
    store.write("a/b.yaml", b"one")
    store.write("a/b.yaml", b"two")

    assert store.read("a/b.yaml") == b"two"
    assert store.names("a") == ["b.yaml"]
    assert store.names("none") == []


def test_a_folder_in_one_of_the_same_name(store: Store) -> None:
    """As the first version of a query that is called 1 has its checkpoints."""
    store.write("checkpoints/1/1/metadata", b"{}")

    assert store.names("checkpoints/1") == ["1"]


@pytest.mark.parametrize("name", ["x.new", "x.tmp"])
def test_names_that_end_like_files_of_other_programs(store: Store, name: str) -> None:
    store.write(f"hosts/application-{name}/wanted.json", b"{}")
    store.write(f"manifests/{name}.yaml", b"")

    assert store.names("hosts") == [f"application-{name}"]
    assert store.names("manifests") == [f"{name}.yaml"]


def test_of_many_that_create_a_file_one_does(store: Store) -> None:
    barrier = threading.Barrier(8)

    def create(number: int) -> bool:
        barrier.wait()
        return store.create("locks/1.json", str(number).encode())

    with ThreadPoolExecutor(8) as pool:
        created = list(pool.map(create, range(8)))

    assert created.count(True) == 1
    assert store.read("locks/1.json") == str(created.index(True)).encode()


def test_a_folder_is_copied_and_removed(store: Store) -> None:
    for name, data in {"metadata": b"{}", "offsets/0": b"v1", "state/0/0/1.delta": b"x" * 5000}.items():
        store.write(f"from/{name}", data)

    assert store.copy("from", "to") == {"metadata": 2, "offsets/0": 2, "state/0/0/1.delta": 5000}
    assert store.read("to/state/0/0/1.delta") == b"x" * 5000
    assert store.sizes("to") == store.sizes("from")
    store.delete("to")
    assert store.sizes("to") == {}
    store.delete("to")


def test_a_reader_never_sees_half_a_file(store: Store) -> None:
    whole = {b"a" * 200_000, b"b" * 200_000}
    seen: set[bytes | None] = set()
    store.write("f", b"a" * 200_000)
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(store.read("f"))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(20):
        store.write("f", (b"b" if number % 2 else b"a") * 200_000)
    done.set()
    reader.join()

    assert seen
    assert seen <= whole


def test_a_folder_that_changes_while_it_is_copied(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's maintenance may still clean away what an old state needed."""
    store.write("from/old", b"1")
    store.write("from/new", b"2")
    copy, removed = store._copy_file, []

    def copy_after_cleaning(source: str, target: str) -> None:
        if not removed:
            removed.append(source)
            store.delete("from/old")
        copy(source, target)

    monkeypatch.setattr(store, "_copy_file", copy_after_cleaning)

    assert store.copy("from", "to") == {"new": 1}
    assert store.names("to") == ["new"]


def test_a_copy_that_lacks_a_file_is_made_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """WebHDFS does not say that the rename failed which gives a copy its name."""
    store.write("from/offsets/0", b"1")
    store.write("from/commits/0", b"2")
    copy, lost = store._copy_file, []

    def copy_all_but_one(source: str, target: str) -> None:
        if lost:
            copy(source, target)
        lost.append(source)

    monkeypatch.setattr(store, "_copy_file", copy_all_but_one)

    assert store.copy("from", "to") == {"commits/0": 1, "offsets/0": 1}
    assert store.sizes("to") == {"commits/0": 1, "offsets/0": 1}


def test_what_spark_calls_it(tmp_path: Path, s3: str) -> None:
    assert Store("s3a://queries/x/").spark_url("checkpoints/q") == "s3a://queries/x/checkpoints/q"
    assert Store(f"file://{tmp_path}/x").spark_url("a") == f"file://{tmp_path}/x/a"
    assert Store(str(tmp_path / "x")).spark_url("a") == f"{tmp_path}/x/a"


@pytest.mark.parametrize("url", ["s3a://key:s3cr3t@bucket/x", "webhdfs://me:s3/cr3t@host:9870/x"])
def test_a_password_in_its_url(url: str) -> None:
    """It would be on the command line of an application, and in messages."""
    with pytest.raises(ConfigError, match=r"store \w+://\*{6}@\S+: has a password") as caught:
        Store(url)

    assert "cr3t" not in str(caught.value)


def test_a_relative_folder_is_the_same_for_an_application(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)

    assert Store("store").spark_url("a") == f"{tmp_path}/store/a"


@pytest.mark.thorough
class TestHdfs:
    """What HDFS cannot do: rename onto a file that is there."""

    @pytest.fixture
    def store(self, hdfs: Hdfs) -> Store:
        return Store(f"{hdfs.url}/queries/{uuid.uuid4().hex}")

    def test_a_writer_that_is_killed_before_the_new_file_has_its_name(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Killed(BaseException):
            pass

        def removed_then_killed(path: str) -> None:
            remove(path)
            if path == "a/b":
                raise Killed

        store.write("a/b", b"one")
        remove = store._remove
        monkeypatch.setattr(store, "_remove", removed_then_killed)
        with pytest.raises(Killed):
            store.write("a/b", b"two")
        monkeypatch.undo()

        assert store.names("a") == ["b"]
        assert store.read("a/b") == b"two"
        store.write("a/b", b"three")
        assert store.read("a/b") == b"three"
        assert list(store.sizes("a")) == ["b"]

    def test_a_lease_is_not_taken_where_nobody_knows_whether_it_was(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The server goes away between the rename and the look whether that was done."""

        def gone(*arguments: Any) -> None:
            raise ConnectionError("the name node is gone")

        assert store.create("locks/1", b"theirs")
        monkeypatch.setattr(store._fs, "info", gone)

        with pytest.raises(StoreError, match="locks/1 cannot be written: the name node is gone"):
            store.create("locks/1", b"ours")


class TestUnreachable:
    def test_hdfs_without_its_library(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv(WEBHDFS, raising=False)
        with pytest.raises(ConfigError, match=r"used: .*; set SPARK_EVENTS_WEBHDFS=HOST:PORT") as caught:
            Store("hdfs://name:9000/queries")

        assert "\n" not in str(caught.value)

    def test_a_server_of_names_that_is_away(self) -> None:
        store = Store(f"webhdfs://127.0.0.1:{free_port()}/queries")

        with pytest.raises(ConfigError, match=r"cannot be reached: .*Connection refused"):
            store.check()
        for call in (store.sizes, store.names, store.read, store.delete):
            with pytest.raises(StoreError, match="queries: a cannot be"):
                call("a")
        with pytest.raises(StoreError, match="a cannot be listed"):
            store.copy("a", "b")

    def test_a_server_of_names_that_says_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(file_systems, "TIMEOUT_S", 0.2)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            store = Store(f"webhdfs://127.0.0.1:{silent.getsockname()[1]}/queries")

            with pytest.raises(ConfigError, match=r"cannot be reached: .*[Tt]imed out"):
                store.check()
            with pytest.raises(StoreError, match=r"a cannot be written: .*[Tt]imed out"):
                store.write("a", b"")

    def test_a_name_node_that_asks_for_kerberos(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delitem(fsspec_conf, "webhdfs", raising=False)
        refusal = b"HTTP/1.1 401 Authentication required\r\nWWW-Authenticate: Negotiate\r\nContent-Length: 0\r\n\r\n"
        what_to_do = "set FSSPEC_WEBHDFS_KERBEROS=true, pip install requests-kerberos, and get a ticket"
        with raw_http([refusal]) as (url, _):
            store = Store(f"{url.replace('http', 'webhdfs')}/queries")

            with pytest.raises(ConfigError, match=f"cannot be reached: the name node asks .*{what_to_do}"):
                store.check()
            with pytest.raises(StoreError, match=f"a cannot be read: the name node asks .*{what_to_do}"):
                store.read("a")
            # It is not a lack of rights, which others may have.
            assert what_to_do in store.write_problem()

    def test_kerberos_without_its_library(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(fsspec_conf, "webhdfs", {"kerberos": True})
        monkeypatch.setitem(sys.modules, "requests_kerberos", None)
        with pytest.raises(
            ConfigError, match=r"used: .*requests_kerberos.*; for Kerberos, pip install requests-kerberos"
        ):
            Store("webhdfs://name:9870/queries")

    def test_a_scheme_that_is_not_known(self) -> None:
        with pytest.raises(
            ConfigError, match="store nope://x: its file system cannot be used: Protocol not known"
        ):
            Store("nope://x")

    def test_a_bucket_that_is_not_there(self, s3: str) -> None:
        with pytest.raises(ConfigError, match=r"store s3a://no-such-bucket/x: cannot be reached: .*bucket"):
            Store("s3a://no-such-bucket/x").check()

    def test_a_server_that_is_away(self, s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        with pytest.raises(ConfigError, match="cannot be reached: EndpointConnectionError"):
            Store("s3a://queries/x").check()
        with pytest.raises(StoreError, match="manifests/q cannot be read: EndpointConnectionError"):
            Store("s3a://queries/x").read("manifests/q")
        with pytest.raises(StoreError, match="savepoints/q cannot be listed: EndpointConnectionError"):
            Store("s3a://queries/x").sizes("savepoints/q")

    def test_a_folder_that_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(StoreError, match="manifests/q cannot be written"):
            Store(str(tmp_path / "file")).write("manifests/q", b"")
