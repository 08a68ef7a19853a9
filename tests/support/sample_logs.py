"""Spark's own sample event logs, and its History Server's answers about them, from the jars of its tests."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from tests.support.paths import REPO
from tests.support.requirements import missing

JARS = REPO / ".cache" / "jars" / "event-logs"
FOLDERS = ("spark-events/", "HistoryServerExpectations/")
NAMES = (
    "app-20161115172038-0000",
    "app-20161116163331-0000",
    "app-20180109111548-0000",
    "app-20200706201101-0003",
    "application_1516285256255_0012",
    "application_1553914137147_0018",
    "application_1555004656427_0144",
    "application_1578436911597_0052",
    "application_1628109047826_1317105",
    "local-1422981759269",
    "local-1422981780767",
    "local-1425081759269",
    "local-1426533911241",
    "local-1426633911242",
    "local-1430917381534",
    "local-1430917381535_1",
    "local-1430917381535_2",
    "local-1596020211915",
    "local-1642039451826",
)


def unpack_sample_logs(folder: Path) -> Path:
    """Write the logs and the answers into a folder, and return it."""
    jars = sorted(JARS.glob("*.jar"))
    if not jars:
        missing(f"no {JARS}: .ci/get-jars event-logs fetches Spark's sample event logs (needs Maven)")
    for path in jars:
        with zipfile.ZipFile(path) as jar:
            jar.extractall(folder, [name for name in jar.namelist() if name.startswith(FOLDERS)])
    return folder


def history_server_answer(folder: Path, name: str) -> Any:
    """Return what the History Server answers, by the name that Spark's tests give the question."""
    return json.loads((folder / "HistoryServerExpectations" / f"{name}_expectation.json").read_text())
