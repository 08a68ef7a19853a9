"""The commands of ``spark-events sql`` in a shop of queries."""

from __future__ import annotations

import os
import subprocess

from tests.support.applications import cli
from tests.support.query_shop import Shop

QUIET = ["--poll-ms", "100", "--lease-ms", "20000"]


def run(shop: Shop, *arguments: str, timeout_s: float = 400) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "SPARK_EVENTS_SQL_STORE": shop.store_url,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "COLUMNS": "160",
    }
    return subprocess.run(
        cli("sql", *arguments),
        env=environment,
        cwd=shop.folder,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def tables(shop: Shop) -> list[str]:
    return ["--table-definition-path", str(shop.folder / "tables.sql")]
