"""The commands of ``spark-events sql`` in a shop of queries."""

from __future__ import annotations

import os
import subprocess

from tests.support.applications import cli
from tests.support.query_shop import Shop
from tests.support.warm_commands import WarmCommands

QUIET = ["--poll-ms", "100", "--lease-ms", "20000"]


def run(shop: Shop, *arguments: str, warm: WarmCommands | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, as a person does or, where only its result matters, in a process that is there."""
    environment = {
        **os.environ,
        "SPARK_EVENTS_SQL_STORE": shop.store_url,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "COLUMNS": "160",
    }
    if warm is not None:
        return warm.run("sql", *arguments, cwd=shop.folder, environment=environment)
    return subprocess.run(
        cli("sql", *arguments),
        env=environment,
        cwd=shop.folder,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


def tables(shop: Shop) -> list[str]:
    return ["--table-definition-path", str(shop.folder / "tables.sql")]
