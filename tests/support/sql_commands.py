"""The commands of ``spark-events sql`` in a shop of queries."""

from __future__ import annotations

import subprocess

from tests.support.query_shop import Shop
from tests.support.warm_commands import WarmCommands, run_command

QUIET = ["--poll-ms", "100", "--lease-ms", "20000"]


def run(shop: Shop, *arguments: str, warm: WarmCommands | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; with ``warm``, in a process that is there."""
    environment = {
        "SPARK_EVENTS_SQL_STORE": shop.store_url,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "COLUMNS": "160",
    }
    return run_command("sql", *arguments, cwd=shop.folder, environment=environment, warm=warm)


def tables(shop: Shop) -> list[str]:
    return ["--table-definition-path", str(shop.folder / "tables.sql")]
