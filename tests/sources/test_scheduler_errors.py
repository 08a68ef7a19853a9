"""What is heard of Spark's scheduler backends: why a cluster has given the application up, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import spark_events.sources.driver as driver
from tests.support.java_source import compile_java
from tests.support.spark import local_spark

pytestmark = pytest.mark.spark
CLUSTER = "org.apache.spark.scheduler.cluster."
SOURCE = Path(driver.__file__).parent / "java" / "SchedulerErrors.java"


class Errors:
    """The Java object, whose methods are its package's own."""

    def __init__(self, session: Any) -> None:
        gateway = session.sparkContext._gateway
        self._jvm = gateway.jvm
        self._none = gateway.new_array(self._jvm.java.lang.Class, 0)
        self._nothing = gateway.new_array(self._jvm.java.lang.Object, 0)
        self._class = compile_java(self._jvm, SOURCE.read_text(), "io.sparkevents.SchedulerErrors")
        self._object = self._class.getConstructor(self._none).newInstance(self._nothing)

    def call(self, name: str) -> Any:
        method = self._class.getDeclaredMethod(name, self._none)
        method.setAccessible(True)
        return method.invoke(self._object, self._nothing)

    def log(self, logger: str, text: str) -> None:
        self._jvm.org.apache.logging.log4j.LogManager.getLogger(logger).error(text)


@pytest.fixture
def errors(java: str, tmp_path: Path) -> Iterator[Errors]:
    with local_spark("errors", tmp_path / "warehouse", {"spark.log.level": "ERROR"}) as session:
        errors = Errors(session)
        errors.call("listen")
        yield errors
        errors.call("close")


def test_what_the_task_scheduler_of_yarn_says_is_not_why(errors: Errors) -> None:
    """It logs as a class of the same package, before and after."""
    errors.log(f"{CLUSTER}YarnScheduler", "Lost executor 3 on host: Container from a bad node")
    errors.log("org.apache.spark.scheduler.TaskSetManager", "Task 1 failed 4 times; aborting job")
    assert errors.call("recent") == ""
    errors.log(f"{CLUSTER}YarnClientSchedulerBackend", "YARN application has exited unexpectedly")
    errors.log(f"{CLUSTER}YarnScheduler", "Lost executor 4 on host: remote Rpc client disassociated")
    assert errors.call("recent") == "YARN application has exited unexpectedly"
