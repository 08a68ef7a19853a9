"""How long tasks waited for Python: the figures are those of real tasks, some of whose workers were not new."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.diagnosis.measured import NO_PYTHON, PythonTimes
from spark_events.diagnosis.times.python_times import StagesInPython
from tests.support.measured_tasks import measured

RUN = "time to run Python workers"
START, INITIALIZE = "time to start Python workers", "time to initialize Python workers"
FUNCTIONS = "time to execute Python code"


def stage(ids_from: int = 1, **values: object) -> dict[str, Any]:
    names = {"run": RUN, "start": START, "initialize": INITIALIZE, "functions": FUNCTIONS}
    of_python = [
        {"ID": ids_from + number, "Name": names[key], "Value": value}
        for number, (key, value) in enumerate(values.items())
    ]
    return {"Accumulables": of_python}


def of(tasks_ms: list[int], *stages: dict[str, Any]) -> list[PythonTimes]:
    times = StagesInPython()
    return [times.of_stage(each, measured(tasks_ms)) for each in stages]


def test_a_worker_that_waited_for_its_task_does_not_start() -> None:
    """One task had a new worker; the other one's had waited for it for 8 s, which Spark counts, too."""
    both = stage(run="9145", start="1810", initialize="11501", functions="4011")
    assert of([8_760, 2_219], both) == [PythonTimes(4_011, 5_134)]


def test_before_spark_measured_the_functions() -> None:
    """Workers initialize in some times of what they take to start; all else has waited for its task."""
    new = stage(run="9145", start="1810", initialize="3272")
    waited = stage(ids_from=9, run="2053", start="0", initialize="8229")
    assert of([8_760, 2_219], new, waited) == [PythonTimes(4_063, 5_082), PythonTimes(2_053, 0)]


def test_stages_of_one_plan_tell_the_sum_so_far() -> None:
    """A plan that is run again, such as that of a cache, has the same metrics."""
    first, second = stage(run="900", functions="700"), stage(run="1000", functions="790")
    assert of([2_000], first, second) == [PythonTimes(700, 200), PythonTimes(90, 10)]


def test_no_more_than_the_tasks_ran() -> None:
    assert of([500], stage(run="900", functions="700")) == [PythonTimes(500, 0)]


@pytest.mark.parametrize("value", ["x", None, -1])
def test_what_is_no_number_is_none(value: object) -> None:
    assert of([500], stage(run=value)) == [NO_PYTHON]
