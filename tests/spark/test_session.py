"""The Spark that a command starts for itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.applications import without_jvms_words
from tests.support.waiting import wait_until

STARTS = """
import os
from spark_events.spark.session import start_session

conf = {"spark.master": "local[1]", "spark.ui.enabled": "false", "spark.log.level": "error"}
session = start_session("test", conf)
read = session._jvm.java.lang.System.getProperty
print(read("mine"), read("spark-events.log.level"), os.environ["SPARK_SUBMIT_OPTS"])
session._jvm.org.apache.spark.sql.SparkSession.active().sparkContext().log().error("heard")
session.stop()
"""


@pytest.mark.extended
@pytest.mark.spark
def test_it_logs_from_the_level_on_that_is_asked_for(java: str) -> None:
    """Its first lines, too; and what a person gives to JVMs goes to it, and to those that come later, as it is."""
    environment = {**os.environ, "SPARK_SUBMIT_OPTS": "-Dmine=1", "SPARK_LOCAL_IP": ""}
    done = subprocess.run(
        [sys.executable, "-c", STARTS], env=environment, capture_output=True, text=True, check=False
    )
    said = without_jvms_words(done.stderr)

    assert done.stdout == "1 ERROR -Dmine=1\n", done.stderr
    assert len(said) == 1, said
    assert said[0].endswith("ERROR SparkContext: heard")


INTERRUPTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
from spark_events.spark.session import LOOPBACK, QUIET, start_session
spark = start_session("test", {**QUIET, **LOOPBACK, "spark.master": "local[1]"})
try:
    print("begins", flush=True)
    spark._jvm.java.lang.Thread.sleep(600_000)
except KeyboardInterrupt:
    spark.stop()
    sys.exit(130)
"""


@pytest.mark.spark
def test_ctrl_c_in_a_call_of_spark_s_needs_no_traceback(java: str) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == "begins\n"
        program.send_signal(signal.SIGINT)
        _, said = program.communicate(timeout=280)
    finally:
        program.kill()
    assert program.returncode == 130
    assert "Traceback" not in said
    assert "KeyboardInterrupt" not in said


STARTING = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from spark_events.spark.session import LOOPBACK, QUIET, start_session
try:
    start_session("test", {**QUIET, **LOOPBACK, "spark.master": "local[1]"})
except KeyboardInterrupt:
    sys.exit(130)
"""


def jvm_of(pid: int) -> int | None:
    """Return the process of the JVM that a process has started for Spark; None before there is one."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        if "deploy.SparkSubmit" in Path(f"/proc/{child}/cmdline").read_text():
            return int(child)
    return None


@pytest.mark.spark
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="Linux says so which children there are")
def test_a_jvm_whose_start_is_given_up_is_not_left_behind(java: str) -> None:
    """It would wait for its driver, which is gone, and keep its terminal's pipes open."""
    program = subprocess.Popen([sys.executable, "-c", STARTING])
    try:
        jvm = wait_until(lambda: jvm_of(program.pid), "the start of a JVM")
        program.send_signal(signal.SIGINT)
        assert program.wait(280) == 130
    finally:
        program.kill()
    try:
        wait_until(lambda: not Path(f"/proc/{jvm}").exists(), "the end of the JVM", 30)
    except AssertionError:
        os.kill(jvm, signal.SIGKILL)
        raise
