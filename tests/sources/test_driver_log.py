"""What a driver's standard error shows of the framework's messages, with and without logging of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

SAY = """
import logging
from spark_events.sources.attaching import driver_log
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


SAID_NOWHERE = """
import logging, sys
from spark_events.sources.attaching import driver_log
from spark_events.runtime.log_once import logger
of_otlp = logging.getLogger("spark_events.otlp")
{before}
driver_log.install()
logger.error("no %s", "endpoint")
logger.error("too few %s")
of_otlp.error("no %s", "certificate")
driver_log.tell("reports to %s", "/var/log")
{after}
"""
DISABLED = """
import logging.config
logging.config.dictConfig({"version": 1})
"""
ITS_HANDLER_RAISES = """
class Broken(logging.Handler):
    def emit(self, record):
        raise ValueError(record)
logger.addHandler(Broken())
"""


TAKES_NOTHING = {
    "closed": "sys.stderr = None",
    "full": "sys.stderr = open('/dev/full', 'w', buffering=1)",
    "unread": "import os; end, into = os.pipe(); os.close(end); sys.stderr = os.fdopen(into, 'w', buffering=1)",
}


@pytest.mark.parametrize("stderr", TAKES_NOTHING)
def test_a_standard_error_that_takes_nothing_stops_nobody(stderr: str) -> None:
    program = SAID_NOWHERE.format(before=TAKES_NOTHING[stderr], after="print('job done')")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.stdout == "job done\n"


def test_a_handler_that_raises_stops_nobody() -> None:
    program = SAID_NOWHERE.format(before=ITS_HANDLER_RAISES, after="print('job done')").replace(
        "of_otlp.error", "logger.error"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.stdout == "job done\n"


def test_a_configuration_of_logging_that_does_not_name_it_leaves_it_on() -> None:
    program = SAID_NOWHERE.format(before=DISABLED, after="")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "spark-events: ERROR: no endpoint" in done.stderr
    assert "spark-events: ERROR: no certificate" in done.stderr
