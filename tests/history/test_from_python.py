"""``spark_events.report``: what it is given."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from spark_events.api.errors import UsageError
from spark_events.history.from_python import report
from tests.support.history_story import DAY, HOUR, T0, Story, write


@pytest.mark.parametrize(
    ("paths", "arguments", "said"),
    [
        ([], {}, "paths: none is given; expected files, folders or globs of stored events"),
        (5, {}, "paths: 5 is not valid"),
        (None, {}, "paths: None is not valid"),
        (["log", 5], {}, "paths: 5 is not valid"),
        ("", {}, "paths: one is empty"),
        ("log", {"sla": 60}, "sla: 60 is not valid; expected '60s'"),
        ("log", {"sla": {"orders": 60}}, "is not valid; expected '60s'"),
        ("log", {"since": 5}, "since 5: expected a time such as 2026-11-25"),
        ("log", {"since": "0s"}, "since 0s: must be longer than 0"),
        ("log", {"app": 5}, "app: 5 is not valid; expected a name"),
        ("log", {"query": ["orders"]}, r"query: \['orders'\] is not valid"),
        ("log", {"spark": 5}, "spark: 5 is not valid; expected a SparkSession"),
    ],
)
def test_arguments_that_cannot_be_used(paths: Any, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        report(paths, **arguments)


def test_a_duration_ends_with_the_report(tmp_path: Path) -> None:
    """As ``--since`` does: of last month's events, the last hours."""
    story = Story().application(0, "RUNNING").application(DAY, "FINISHED")
    made = report(write(tmp_path, story), since="2h")
    assert (made.since_ms, made.until_ms) == (T0 + DAY - 2 * HOUR, T0 + DAY)


def test_times_of_datetime(tmp_path: Path) -> None:
    """As notebooks have them; without a zone, they are of UTC, as texts are."""
    story = Story().application(0, "RUNNING").application(DAY, "FINISHED")
    log = write(tmp_path, story)
    since = datetime(2026, 11, 20, 12)
    assert (
        report(log, since=since).since_ms == report(log, since="2026-11-20T12:00").since_ms == T0 + DAY // 2
    )
