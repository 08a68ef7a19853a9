"""Whatever breaks a commit at whatever point: the table is whole, or as it was, and nothing is left over."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_events.ctas.fault_points import POINTS
from tests.support.applications import App
from tests.support.ctas_catalogs import configuration
from tests.support.lakehouse import CONNECTORS
from tests.support.paths import APPS
from tests.support.servers import PostgreSql, running_postgresql

OLD, NEW = 3, 10
PURPOSES = ("create", "absent", "replace")
COMMITTING = POINTS[POINTS.index("before_catalog") :]
AFTER_CATALOG = POINTS[POINTS.index("after_catalog") :]
AFTER_WRITE = POINTS[POINTS.index("after_write") :]
DURING_WRITE = "during_write"

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900), pytest.mark.extended]
thorough = pytest.mark.thorough
CATALOGS = ("memory", "hive", "postgresql", "delta")


def each_catalog(sample: str) -> pytest.MarkDecorator:
    """Try all catalogs, one of them without being thorough; Delta where its jars are."""
    marks = {sample: (), "delta": CONNECTORS}
    return pytest.mark.parametrize(
        "catalog", [pytest.param(name, marks=marks.get(name, thorough)) for name in CATALOGS]
    )


@pytest.fixture
def conf(catalog: str, java: str, tmp_path: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    (tmp_path / "warehouse").mkdir()
    server: PostgreSql | None = request.getfixturevalue("postgresql") if catalog == "postgresql" else None
    if server is not None:
        server.sql("shop", "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    return configuration(catalog, tmp_path, server)


@each_catalog("memory")
def test_an_exception_at_each_point(catalog: str, conf: dict[str, str], tmp_path: Path) -> None:
    found = run(catalog, conf, tmp_path, "raise")
    # From the catalog's call on the statement has succeeded: what breaks then is told, and mended.
    published = AFTER_WRITE if catalog == "delta" else AFTER_CATALOG
    assert_all_or_nothing(found["rows"], published, POINTS)
    assert found["orphans"] == []
    assert "broken" in found["outcomes"]


@each_catalog("postgresql")
def test_a_kill_at_each_point(catalog: str, conf: dict[str, str], tmp_path: Path) -> None:
    killed = app(catalog, conf, tmp_path, "kill").end(400)
    assert killed.code == -signal.SIGKILL, killed.out[-2000:] + killed.err[-2000:]
    found = run(catalog, conf, tmp_path, "recover")
    if catalog == "memory":
        # The catalog is gone with its driver; only files of tables that were whole, and seen so, are left.
        assert set(found["rows"].values()) == {None}
        whole = {name.rsplit("-", 2)[0] for name in found["orphans"]}
        assert whole <= {f"{purpose}_{point}" for purpose in PURPOSES for point in (*POINTS, DURING_WRITE)}
        assert not {name for name in whole if name.startswith(("create", "absent"))} - {
            f"{purpose}_{point}" for purpose in PURPOSES for point in ("after_committed", "before_collect")
        }
        return
    published = AFTER_WRITE if catalog == "delta" else COMMITTING
    assert_all_or_nothing(found["rows"], published, (*POINTS, DURING_WRITE))
    assert found["orphans"] == []


def assert_all_or_nothing(
    rows: dict[str, int | None], published: tuple[str, ...], points: tuple[str, ...]
) -> None:
    expected = {
        f"{purpose}_{point}": NEW if point in published else OLD if purpose == "replace" else None
        for point in points
        for purpose in PURPOSES
    }
    assert {name: rows[name] for name in expected} == expected


def run(catalog: str, conf: dict[str, str], folder: Path, what: str) -> Any:
    ended = app(catalog, conf, folder, what).end(400)
    assert ended.code == 0, ended.out[-2000:] + ended.err[-3000:]
    found = json.loads(ended.out.splitlines()[-1])
    assert found["other_tables"] == (["spark_events_ctas"] if catalog == "postgresql" else [])
    return found


def app(catalog: str, conf: dict[str, str], folder: Path, what: str) -> App:
    return App([sys.executable, str(APPS / "ctas_crash.py"), catalog, str(folder), what], conf, folder)


@pytest.fixture(scope="module")
def postgresql() -> Iterator[PostgreSql]:
    with running_postgresql() as server:
        yield server
