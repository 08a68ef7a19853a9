"""What ``--conf`` takes."""

from __future__ import annotations

import pytest

from spark_events.spark.conf import UsageError, parse_assignments


@pytest.mark.parametrize("assignment", ["spark.events.enabled", "=false", " = false", ""])
def test_what_is_no_assignment_is_named(assignment: str) -> None:
    """An empty key would be taken for a list of reporters' names."""
    with pytest.raises(UsageError, match=f"--conf {assignment}: expected key=value"):
        parse_assignments([assignment])
