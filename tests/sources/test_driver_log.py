"""What a driver's standard error shows of the framework's messages, with and without logging of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

SAY = """
import logging
from spark_events.sources import driver_log
driver_log.install()
driver_log.install()
{before}
logging.getLogger("spark_events").info("not for everybody")
logging.getLogger("spark_events").warning("events wait")
logging.getLogger("spark_events.otlp").error("no %s", "endpoint")
driver_log.tell("reports to %s", "/var/log")
"""


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (
            "",
            [
                "spark-events: WARNING: events wait",
                "spark-events: ERROR: no endpoint",
                "spark-events: INFO: reports to /var/log",
            ],
        ),
        (
            "logging.basicConfig(level='INFO', format='own %(message)s')",
            ["own not for everybody", "own events wait", "own no endpoint", "own reports to /var/log"],
        ),
        ("logging.basicConfig(format='own %(message)s')", ["own events wait", "own no endpoint"]),
    ],
    ids=["without logging", "with all that the application logs", "with the application's own"],
)
def test_each_message_once(before: str, said: list[str]) -> None:
    command = [sys.executable, "-c", SAY.format(before=before)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stderr.splitlines() == said
