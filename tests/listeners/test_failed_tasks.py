"""What workers have sent of failed tasks, for the failures that Spark reports."""

from __future__ import annotations

from spark_events.api import CodePlace, Failure
from spark_events.listeners.tasks.failed_tasks import FailedTasks

PLACE = {"file": "/app/shop.py", "line": 7, "function": "price"}
CODE = CodePlace("/app/shop.py", 7, "price")


def test_the_failure_of_a_task() -> None:
    """By the place and the first line of the message, to which Spark may add others."""
    tasks = FailedTasks()
    tasks.put({**PLACE, "message": "no\nprice", "udf": "price", "call": 3, "locals": {"row": "7"}})
    assert tasks.details(Failure("no\nmore by Spark", code=CODE)) == {
        "udf.name": "price",
        "udf.call": 3,
        "local.row": "7",
    }
    assert tasks.details(Failure("another", code=CODE)) == {}
    assert tasks.details(Failure("no", code=None)) == {}


def test_of_many_the_last_are_kept() -> None:
    tasks = FailedTasks()
    for number in range(101):
        tasks.put({**PLACE, "message": f"no {number}", "locals": {"row": str(number)}})
    assert tasks.details(Failure("no 0", code=CODE)) == {}
    assert tasks.details(Failure("no 100", code=CODE)) == {"local.row": "100"}
