"""What a log's task records say of executors."""

from __future__ import annotations

import json

import pytest

from spark_events.sources.event_log.executor_states import ExecutorStates
from spark_events.sources.event_log.tasks.all_stage_tasks import AllStageTasks
from spark_events.sources.event_log.tasks.task_lines import TASK_END, TASK_START
from tests.support.event_log_sample import SampleLog

SHUFFLED = b'"Shuffle Write Metrics":{"Shuffle Bytes Written":'


@pytest.mark.parametrize("form", ["of Spark", "of another order", "without metrics"])
@pytest.mark.parametrize("sum_metrics", [True, False], ids=["sums", "no sums"])
@pytest.mark.parametrize("known_stage", [True, False], ids=["", "of a stage that is over"])
def test_shuffle_output(form: str, sum_metrics: bool, known_stage: bool) -> None:
    """It is added up for spans and metrics, and for events alone, in whichever form a record has it."""
    executors = ExecutorStates()
    stages = AllStageTasks(executors)
    stages.sum_metrics = sum_metrics
    expected = 0
    for line in SampleLog().job(3, stages=1):
        if b"SparkListenerStageSubmitted" in line and known_stage:
            stages.submitted(json.loads(line))
        elif line.startswith(TASK_START):
            stages.started(line)
        elif line.startswith(TASK_END):
            if form == "of another order":
                line = line.replace(SHUFFLED, b'"Shuffle Write Metrics":{"Added":0,"Shuffle Bytes Written":')
            elif form == "without metrics":
                line = line[: line.rindex(b',"Task Metrics"')] + b"}\n"
            metrics = json.loads(line).get("Task Metrics") or {"Shuffle Write Metrics": {}}
            expected += metrics["Shuffle Write Metrics"].get("Shuffle Bytes Written", 0)
            stages.ended(line)

    removed = executors.removed({"Event": "SparkListenerExecutorRemoved", "Executor ID": "1"})
    assert removed["Shuffle Bytes Written"] == expected
    assert (expected > 0) is (form != "without metrics")
