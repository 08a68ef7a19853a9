"""Who owns real tables, and what they are tagged with."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Any

import pytest

from tests.support.applications import App, cli
from tests.support.lakehouse import CONNECTORS, lakehouse
from tests.support.lineage_shop import Shop, listeners
from tests.support.openlineage_schema import problems_of
from tests.support.paths import APPS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.extended]
FORMATS = {
    "files": ("USING parquet", "default.t"),
    "hive": ("STORED AS parquet", "default.t"),
    "delta": ("USING delta", "default.t"),
    "iceberg": ("USING iceberg", "ice.shop.t"),
}
BY_THE_PROPERTY = [{"name": "team:data", "type": "MAINTAINER"}, {"name": "user:jdoe"}]
BY_THE_CATALOG = {
    "hive": [{"name": getpass.getuser()}],
    "iceberg": [{"name": getpass.getuser()}],
}
"""Spark's own catalog, if it is not Hive's, keeps no owners."""
TAGS = [{"key": "pii", "value": "true", "field": "email"}, {"key": "tier", "value": "gold"}]
LATER = [{"key": "year", "value": "2026", "source": "DBT"}]


@pytest.fixture(
    scope="module",
    params=[
        "files",
        "hive",
        pytest.param("delta", marks=CONNECTORS),
        pytest.param("iceberg", marks=CONNECTORS),
    ],
)
def owned(request: pytest.FixtureRequest, java: str, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    of_format, table = FORMATS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    listener = "spark.job-status-changed.listener.without"
    conf = {
        **listeners(folder),
        f"{listener}.factory.class": "openlineage",
        f"{listener}.transport.type": "file",
        f"{listener}.transport.path": str(folder / "without.jsonl"),
        f"{listener}.include-dataset-owners": "false",
        "spark.log.level": "ERROR",
    }
    if request.param == "hive":
        url = f"jdbc:derby:;databaseName={folder}/metastore;create=true"
        conf |= {
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.javax.jdo.option.ConnectionURL": url,
        }
    if request.param in ("delta", "iceberg"):
        conf |= lakehouse(folder)
    app = cli("run", "--master", "local[2]", str(APPS / "owned.py"), str(folder), of_format, table)
    run = App(app, conf, folder).end(300)
    assert run.code == 0, run.out[-2000:] + run.err[-3000:]
    return Shop.read(run, folder)


def facets(shop: Shop, job: str, role: str, facet: str) -> list[Any]:
    """Return what each such statement says at its end of the only dataset that it reads, or writes."""
    key = {"ownership": "owners", "tags": "tags"}[facet]
    events = [
        event
        for event in shop.openlineage
        if event["job"]["name"].endswith(f".{job}") and event["eventType"] == "COMPLETE"
    ]
    return [event[role][0]["facets"].get(facet, {}).get(key, []) for event in events]


@pytest.mark.parametrize("name", ["t_plain", "t_wrong"])
def test_the_owner_is_the_catalogs(owned: Shop, name: str) -> None:
    wanted = BY_THE_CATALOG.get(owned.folder.name.rstrip("0"), [])
    assert facets(owned, f"insert.{database(owned)}.{name}", "outputs", "ownership") == [wanted]


def database(shop: Shop) -> str:
    return next(
        event["jobName"].removeprefix("insert.").removesuffix(".t_plain")
        for event in shop.jobs
        if event["jobName"].startswith("insert.") and event["jobName"].endswith(".t_plain")
    )


def test_what_properties_say(owned: Shop) -> None:
    """Of what is written and of what is read; the catalog's owner gives way."""
    of = database(owned)
    assert facets(owned, f"insert.{of}.t_tagged", "outputs", "ownership") == [BY_THE_PROPERTY]
    assert facets(owned, f"insert.{of}.t_tagged", "outputs", "tags") == [TAGS]
    assert facets(owned, f"insert.{of}.t_plain", "inputs", "ownership") == [BY_THE_PROPERTY]
    assert facets(owned, f"insert.{of}.t_plain", "inputs", "tags") == [TAGS]
    assert facets(owned, f"insert.{of}.t_plain", "outputs", "tags") == [[]]


def test_what_is_said_later(owned: Shop) -> None:
    of = database(owned)
    # On a busy machine, a statement may have ended before its beginning is heard of, or before it is told.
    assert facets(owned, f"alter.{of}.t_plain", "outputs", "tags") in ([[], LATER], [LATER, LATER], [LATER])
    assert facets(owned, f"overwrite.{of}.t_plain", "outputs", "tags") == [LATER]


def test_what_a_new_table_has(owned: Shop) -> None:
    of = database(owned)
    assert facets(owned, f"create.{of}.t_tagged", "outputs", "ownership") == [BY_THE_PROPERTY]
    assert facets(owned, f"create.{of}.t_tagged", "outputs", "tags") == [TAGS]


def test_a_property_that_is_none_is_left_out_and_said(owned: Shop) -> None:
    of = database(owned)
    assert facets(owned, f"insert.{of}.t_wrong", "outputs", "tags") == [[]]
    said = owned.run.out + owned.run.err
    lines = [line for line in said.splitlines() if "is left out: expected JSON like" in line]
    assert len(lines) == len(set(lines)) == 2
    assert all("t_wrong" in line for line in lines)


def test_the_file_log_has_them(owned: Shop) -> None:
    told = [event for event in owned.of(f"insert.{database(owned)}.t_tagged") if "lineage" in event]
    (dataset,) = told[-1]["lineage"]["sinks"][0]["datasets"]
    assert dataset["owners"] == BY_THE_PROPERTY
    assert dataset["tags"] == [{"key": "pii", "value": "true", "column": "email"}, TAGS[1]]


def test_owners_can_be_left_out(owned: Shop) -> None:
    text = (Path(owned.folder) / "without.jsonl").read_text()
    assert '"tags"' in text
    assert '"ownership"' not in text


def test_every_event_conforms_to_the_schemas(owned: Shop) -> None:
    assert [problem for event in owned.openlineage for problem in problems_of(event)] == []
