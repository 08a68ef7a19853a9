"""``spark_events.report``: what it is given."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.api.errors import UsageError
from spark_events.history.from_python import report


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
    ],
)
def test_arguments_that_cannot_be_used(paths: Any, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        report(paths, **arguments)
