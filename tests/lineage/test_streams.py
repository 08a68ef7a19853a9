"""Columns of streaming queries that keep state: windows, joins of streams, duplicates, functions with state."""

from __future__ import annotations

import pyspark
import pytest

from tests.support.applications import App, cli
from tests.support.lineage_shop import Shop, listeners
from tests.support.paths import APPS

pytestmark = [pytest.mark.spark, pytest.mark.extended]


@pytest.fixture(scope="module")
def streams(java: str, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    folder = tmp_path_factory.mktemp("streams")
    command = cli("run", "--master", "local[2]", str(APPS / "streams.py"), str(folder))
    run = App(command, {**listeners(folder), "spark.log.level": "OFF"}, folder).end(300)
    assert run.code == 0, run.out[-1000:] + run.err[-3000:]
    return Shop.read(run, folder)


@pytest.mark.parametrize(
    ("name", "sources", "columns", "influences"),
    [
        (
            "windows",
            ["data/orders"],
            {
                "window": "time TRANSFORMATION+CONDITIONAL",
                "kind": "kind IDENTITY",
                "total": "amount AGGREGATION",
            },
            {"kind GROUP_BY", "time GROUP_BY+FILTER"},
        ),
        (
            "joined",
            ["data/orders", "data/payments"],
            {"id": "id IDENTITY", "more": "amount TRANSFORMATION", "paid": "paid IDENTITY"},
            {"id JOIN", "order JOIN", "paid JOIN", "time JOIN"},
        ),
        (
            "sessions",
            ["data/orders"],
            {
                "session_window": "time TRANSFORMATION",
                "kind": "kind IDENTITY",
                "most": "amount AGGREGATION",
            },
            {"kind GROUP_BY", "time GROUP_BY+FILTER"},
        ),
        (
            "unpaid",
            ["data/orders", "data/payments"],
            {"id": "id IDENTITY", "since": "paid TRANSFORMATION, time TRANSFORMATION"},
            {"id JOIN", "order JOIN", "paid JOIN", "time JOIN"},
        ),
        (
            "named",
            ["data/orders", "data/kinds"],
            {"id": "id IDENTITY", "label": "amount TRANSFORMATION, name TRANSFORMATION"},
            {"kind JOIN"},
        ),
        ("distinct", ["data/orders"], {"id": "id IDENTITY", "amount": "amount IDENTITY"}, {"id GROUP_BY"}),
        pytest.param(
            "stateful",
            ["data/orders"],
            # What a function in Python makes of its rows nobody knows: all of them, perhaps.
            dict.fromkeys(
                ("kind", "total"),
                "amount TRANSFORMATION, id TRANSFORMATION, kind TRANSFORMATION, time TRANSFORMATION",
            ),
            {"kind GROUP_BY"},
            marks=pytest.mark.skipif(
                pyspark.__version__ < "4", reason="PySpark 3.5 fails in its own code with this pandas"
            ),
        ),
        pytest.param(
            "processed",
            ["data/orders"],
            dict.fromkeys(("kind", "n"), "amount TRANSFORMATION, kind TRANSFORMATION"),
            {"kind GROUP_BY"},
            marks=pytest.mark.skipif(pyspark.__version__ < "4.1", reason="PySpark has had it since 4.1"),
        ),
    ],
)
def test_columns(
    streams: Shop, name: str, sources: list[str], columns: dict[str, str], influences: set[str]
) -> None:
    told = [event["lineage"] for event in streams.of(name) if "lineage" in event][-1]
    found: dict[str, list[str]] = {}
    decides = set()
    for edge in told["relations"]:
        for column, inputs in edge["columns"].items():
            found.setdefault(column, []).extend(
                f"{one['column']} {'+'.join(one['transformations'])}" for one in inputs
            )
        decides |= {f"{one['column']} {'+'.join(one['transformations'])}" for one in edge["influences"]}
    assert streams.lineage(name) == (sources, [f"data/{name}"])
    assert {column: ", ".join(sorted(inputs)) for column, inputs in found.items()} == columns
    assert decides == influences
    assert "incomplete" not in told
