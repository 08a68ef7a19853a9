"""One application a query, on a real standalone cluster and locally."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_events.sql_runner.deploy.host_link import HostLink
from spark_events.sql_runner.store.layout import APPLICATION
from spark_events.sql_runner.store.store import Store
from tests.support.applications import kill_all
from tests.support.query_shop import Shop
from tests.support.spark_cluster import SparkCluster
from tests.support.sql_commands import QUIET, run, tables
from tests.support.waiting import wait_until
from tests.support.warm_commands import WarmCommands

# They start Spark several times; a loaded machine takes long for that.
pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
DRIVER = [
    "--conf",
    "spark.driver.host=127.0.0.1",
    "--conf",
    "spark.driver.bindAddress=127.0.0.1",
    "--conf",
    "spark.ui.enabled=false",
]


@pytest.fixture
def shop(tmp_path: Path, warm: WarmCommands) -> Iterator[Shop]:
    shop = Shop(tmp_path)
    yield shop
    for name in ("cheap", "other"):
        if alive(shop, name):
            run(shop, "stop", name, warm=warm)
            wait_until(lambda name=name: not alive(shop, name), f"{name} has ended")


def alive(shop: Shop, name: str) -> bool:
    return HostLink(Store(shop.store_url), APPLICATION + name).is_alive


def deploy(shop: Shop, master: str, *manifests: dict[str, Any], warm: WarmCommands | None = None) -> Any:
    folder = shop.write("queries", *manifests)
    options = ["--mode", "application", "--master", master, *DRIVER, *QUIET]
    return run(shop, "deploy", str(folder), *tables(shop), *options, warm=warm)


@pytest.mark.thorough
def test_an_application_for_each_query_on_a_cluster(
    shop: Shop, cluster: SparkCluster, warm: WarmCommands
) -> None:
    """Its properties are those of its application, it is resubmitted for others, and goes on."""
    shop.order(2)
    properties = {"spark.executor.memory": "600m", "spark.cores.max": "1"}
    first = deploy(shop, cluster.master, shop.manifest(sparkProperties=properties))
    assert first.returncode == 0, first.stderr + _log(shop, "cheap")
    assert "warning" not in first.stderr, "an application can take what a session cannot"
    shop.wait_ids(shop.cheap_ids())
    status = HostLink(Store(shop.store_url), APPLICATION + "cheap").snapshot().status
    assert status is not None
    assert status.master == cluster.master
    application = status.application_id

    more = {**properties, "spark.executor.memory": "700m"}
    again = deploy(shop, cluster.master, shop.manifest(sparkProperties=more), warm=warm)

    assert again.returncode == 0, again.stderr + _log(shop, "cheap")
    assert "stop with a savepoint, and start from it" in again.stdout
    status = HostLink(Store(shop.store_url), APPLICATION + "cheap").snapshot().status
    assert status is not None
    assert status.application_id != application
    shop.order(1)
    shop.wait_ids(shop.cheap_ids())
    stopped = run(shop, "stop", "cheap", "--savepoint", warm=warm)
    assert stopped.returncode == 0, stopped.stderr
    assert not alive(shop, "cheap"), "an application ends with its query"


@pytest.mark.extended
def test_an_application_that_was_killed_is_started_again_from_its_checkpoint(
    shop: Shop, warm: WarmCommands
) -> None:
    shop.order(2)
    assert deploy(shop, "local[2]", shop.manifest(), warm=warm).returncode == 0, _log(shop, "cheap")
    shop.wait_ids(shop.cheap_ids())
    kill_all(_processes(shop))
    wait_until(lambda: not alive(shop, "cheap"), "it is known to be gone")
    assert run(shop, "status", warm=warm).returncode == 1
    shop.order(1)

    again = deploy(shop, "local[2]", shop.manifest(), warm=warm)

    assert again.returncode == 0, again.stderr
    assert again.stdout == "ok cheap version 1: start from the latest state\n"
    shop.wait_ids(shop.cheap_ids())


@pytest.mark.extended
def test_an_application_that_does_not_come_up(shop: Shop, warm: WarmCommands) -> None:
    failed = deploy(shop, "spark:/wrong", shop.manifest(), warm=warm)

    assert failed.returncode == 1
    assert (
        "failed cheap version 1: start with a clean state: application 'cheap' ended with exit code"
        in failed.stdout
    )
    assert "cheap.log" in failed.stdout
    assert run(shop, "status", warm=warm).stdout == "no query is deployed\n"


def _processes(shop: Shop) -> list[int]:
    """Return the application's processes: spark-submit's JVM, and the Python that it has started."""
    url = shop.store_url.encode()
    return [
        int(folder.name)
        for folder in Path("/proc").iterdir()
        if folder.name.isdigit() and url in _command(folder)
    ]


def _command(folder: Path) -> bytes:
    try:
        return (folder / "cmdline").read_bytes()
    except OSError:
        return b""


def _log(shop: Shop, name: str) -> str:
    path = shop.folder / "logs" / f"{name}.log"
    return path.read_text()[-3000:] if path.exists() else ""
