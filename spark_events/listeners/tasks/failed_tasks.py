"""What workers have sent of tasks that failed lately: Spark's records do not have it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from spark_events.api import AttributeValue, CodePlace, Failure

_MOST = 100


def code_of(failed: Mapping[str, Any]) -> CodePlace | None:
    """Return the place in the code that raised what a task failed with; None if it is not known."""
    if "file" not in failed:
        return None
    return CodePlace(str(failed["file"]), int(failed["line"]), str(failed["function"]))


def details_of(failed: Mapping[str, Any]) -> dict[str, AttributeValue]:
    """Return the attributes of a failed task: of the UDF, its call, and the local variables."""
    details: dict[str, AttributeValue] = {
        f"local.{name}": str(value) for name, value in (failed.get("locals") or {}).items()
    }
    if "udf" in failed:
        details |= {"udf.name": str(failed["udf"]), "udf.call": int(failed["call"])}
    return details


class FailedTasks:
    """The details of the last hundred that differ, by what was raised and where."""

    def __init__(self) -> None:
        self._details: OrderedDict[tuple[CodePlace | None, str], dict[str, AttributeValue]] = OrderedDict()

    def put(self, failed: Mapping[str, Any]) -> None:
        """Keep the details of a failed task."""
        key = _key(code_of(failed), str(failed["message"]))
        self._details[key] = details_of(failed)
        self._details.move_to_end(key)
        if len(self._details) > _MOST:
            self._details.popitem(last=False)

    def details(self, failure: Failure) -> Mapping[str, AttributeValue]:
        """Return those of the task that a failure is about; empty if there are none."""
        return self._details.get(_key(failure.code, failure.message), {})


def _key(code: CodePlace | None, message: str) -> tuple[CodePlace | None, str]:
    # Spark may add to a message, and that of a group goes on with what the first of its exceptions says.
    return code, message.split("\n", 1)[0].split(" sub-exception", 1)[0]
