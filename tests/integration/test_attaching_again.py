"""Applications that attach many times, in the middle of attaching, or fail to attach: nothing is left behind."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark_events.cli.main import app
from tests.support.applications import App
from tests.support.file_log import file_events, statuses
from tests.support.waiting import free_port

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("java")]


def run(tmp_path: Path, *lines: str) -> App:
    """Run a program that has a session ``spark`` and a configuration ``conf``."""
    path = str(tmp_path / "events")
    conf = {
        "spark.events.reporter.f.factory.class": "file_log",
        "spark.events.reporter.f.path": path,
        "spark.job-status-changed.listener.f.factory.class": "file_log",
        "spark.job-status-changed.listener.f.path": path,
        "spark.metrics.reporter.prom.factory.class": "prometheus",
        "spark.metrics.reporter.prom.port": str(free_port()),
    }
    script = tmp_path / "again.py"
    head = (
        "import threading",
        "from pyspark.sql import SparkSession",
        "import spark_events",
        "spark = SparkSession.builder.master('local[1]').appName('again').getOrCreate()",
        f"conf = {conf!r}",
    )
    script.write_text("\n".join((*head, *lines, "spark.stop()", "")))
    return App([sys.executable, str(script)], {}, tmp_path)


@pytest.mark.extended
def test_what_is_closed_leaves_spark(tmp_path: Path) -> None:
    """Of an attachment that is closed, nothing listens, reads or keeps anything in Spark's JVM."""
    ended = run(
        tmp_path,
        "jvm, bus = spark.sparkContext._jvm, spark.sparkContext._jsc.sc().listenerBus()",
        "def queues():",
        "    return sorted(bus.activeQueues().mkString(' ').split())",
        "def readers():",
        "    of_jvm = jvm.java.lang.Thread.getAllStackTraces().keySet().toString()",
        "    return of_jvm.count('spark-events-lineage')",
        "before = queues()",
        "for _ in range(3):",
        "    with spark_events.attach(spark, conf=conf, strict=True):",
        "        spark.range(10).count()",
        "        print(set(queues()) - set(before), readers())",
        "print(queues() == before, readers())",
    ).end()

    assert ended.code == 0, ended.err[-3000:]
    lines = ended.out.splitlines()
    assert all("sparkEventsLineage" in line and line.endswith(" 1") for line in lines[:3])
    assert lines[3:] == ["True 0"]


def test_a_forked_child(tmp_path: Path) -> None:
    """Only the driver reports: what a child that it has forked attaches to and closes does not end the application."""
    ended = run(
        tmp_path,
        "import os",
        "reporting = spark_events.attach(spark, conf=conf, strict=True)",
        "if child := os.fork():",
        "    print(os.waitpid(child, 0)[1])",
        "else:",
        "    with spark_events.attach(spark, conf=conf) as of_child:",
        "        of_child.event('ChildDone')",
        "    os._exit(0)",
        "spark.range(10).count()",
        "reporting.event('DriverDone')",
    ).end()

    assert (ended.code, ended.out) == (0, "0\n"), ended.err[-3000:]
    assert ended.err.count("ERROR: this process was forked from a driver that is attached") == 1
    events = file_events(tmp_path / "events")
    assert statuses(events, "application") == ["CREATED", "RUNNING", "FINISHED"]
    assert [event["eventName"] for event in events if "Done" in event["eventName"]] == ["DriverDone"]


@pytest.mark.extended
def test_each_attachment_has_events_of_its_own(tmp_path: Path) -> None:
    """An application that was attached to before is up again, and its end is not taken for that of before.

    What leaves a block, or carries the program to where it closes its attachment, is a failure; what closes a
    generator is none.
    """
    ended = run(
        tmp_path,
        "for number in range(3):",
        "    try:",
        "        with spark_events.attach(spark, conf=conf, strict=True):",
        "            spark.range(10).count()",
        "            if number:",
        "                raise (ValueError('of a block'), KeyboardInterrupt)[number - 1]",
        "    except BaseException:",
        "        pass",
        "try:",
        "    raise OSError('for which there is another way')",
        "except OSError:",
        "    attachment = spark_events.attach(spark, conf=conf, strict=True)",
        "    attachment.close()",
        "def attached():",
        "    with spark_events.attach(spark, conf=conf, strict=True):",
        "        yield",
        "def closing():",
        "    attachment = spark_events.attach(spark, conf=conf, strict=True)",
        "    try:",
        "        yield",
        "    finally:",
        "        attachment.close()",
        "for make in (attached, closing):",
        "    resource = make()",
        "    next(resource)",
        "    resource.close()",
        "attachment = spark_events.attach(spark, conf=conf, strict=True)",
        "spark.range(10).count()",
        "try:",
        "    raise ValueError('of the last')",
        "finally:",
        "    attachment.close()",
    ).end()

    assert ended.code == 1, ended.err[-3000:]
    events = file_events(tmp_path / "events")
    ends = ["FINISHED", "FAILED", "FAILED", "FINISHED", "FINISHED", "FINISHED", "FAILED"]
    each = [status for end in ends for status in ("RUNNING", end)]
    assert statuses(events, "application") == ["CREATED", *each]
    failures = [event["body"] for event in events if event["eventName"] == "JobFailureEvent"]
    causes = ("ValueError: of a block", "SIGINT (Ctrl-C)", "ValueError: of the last")
    assert [cause in failure for cause, failure in zip(causes, failures, strict=True)] == [True] * 3
    ids = [event["eventId"] for event in events]
    assert len(ids) == len({*ids})
    status = CliRunner().invoke(app, ["status", str(tmp_path / "events"), "--json"])
    assert [each["status"] for each in json.loads(status.stdout)] == ["FAILED"]


@pytest.mark.extended
def test_attaching_that_is_interrupted(tmp_path: Path) -> None:
    """What the program's own code raises in the middle of ``attach`` leaves nothing open: the next one works."""
    ended = run(
        tmp_path,
        "from spark_events.sources.driver import source",
        "bus = spark.sparkContext._jsc.sc().listenerBus()",
        "before, stop = bus.activeQueues().mkString(' '), type(spark.sparkContext).stop",
        "def names():",
        "    ours = [one for one in threading.enumerate() if one.name.startswith('spark-events')]",
        "    for one in ours:",
        "        one.join(10)",
        "    return [one.name for one in ours if one.is_alive()]",
        "class Late(BaseException):",
        "    pass",
        "def interrupted(*_):",
        "    raise Late",
        "for of_class, name in (",
        "    (source.DriverBridge, 'subscribe'), (source.Parts, '_open_reports'), (source.Parts, 'beat'),",
        "    (source.DriverSource, '_poll'), (source.threading.Thread, 'start'),",
        "):",
        "    usual = getattr(of_class, name)",
        "    setattr(of_class, name, interrupted)",
        "    try:",
        "        spark_events.attach(spark, conf=conf)",
        "    except Late:",
        "        print(name, names(), bus.activeQueues().mkString(' ') == before, end=' ')",
        "        print(type(spark.sparkContext).stop is stop, 'SPARK_EVENTS_TASK' in spark.sparkContext.environment)",
        "    setattr(of_class, name, usual)",
        "with spark_events.attach(spark, conf=conf, strict=True):",
        "    spark.range(10).count()",
    ).end()

    assert ended.code == 0, ended.err[-3000:]
    at = ("subscribe", "_open_reports", "beat", "_poll", "start")
    assert ended.out.splitlines() == [f"{name} [] True True False" for name in at]
    assert statuses(file_events(tmp_path / "events"), "application")[-1] == "FINISHED"


@pytest.mark.extended
def test_no_thread_to_be_had(tmp_path: Path) -> None:
    """As where processes are limited: the program goes on, and nobody is told of what will have no end."""
    ended = run(
        tmp_path,
        "usual = threading.Thread.start",
        "def short(thread):",
        "    if thread.name == 'spark-events-driver':",
        '        raise RuntimeError("can\'t start new thread")',
        "    usual(thread)",
        "threading.Thread.start = short",
        "spark_events.attach(spark, conf=conf)",
        "print(spark.range(10).count())",
    ).end()

    assert (ended.code, ended.out.splitlines()[-1]) == (0, "10"), ended.err[-3000:]
    assert "can't start new thread" in ended.err
    assert not (tmp_path / "events").exists() or file_events(tmp_path / "events") == []


def test_the_bridge_is_compiled_meanwhile(tmp_path: Path) -> None:
    """In a thread of its own, if it is needed; if that fails, attaching compiles it."""
    ended = run(
        tmp_path,
        "import os",
        "from spark_events.sources.attaching import attachment  # has the bridge of its own",
        "from spark_events.sources.driver import bridge_java",
        "compiled, context = [], spark.sparkContext",
        "class Unit:",
        "    def is_loaded(self, jvm):",
        "        return False",
        "    def load(self, jvm, name):",
        "        compiled.append(threading.current_thread().name)",
        "        raise ValueError('of this Spark')",
        "usual, bridge_java.JAVA = bridge_java.JAVA, Unit()",
        "def asked(**changed):",
        "    compiled.clear()",
        "    with spark_events.attach(spark, **changed) as attachment:",
        "        for thread in threading.enumerate():",
        "            if thread.name == 'spark-events-compile':",
        "                thread.join()",
        "        print(compiled, attachment.active, usual.is_loaded(context._jvm))",
        "asked()",
        "asked(conf={**conf, 'spark.events.enabled': 'False'})",
        "os.environ['SPARK_EVENTS_ENABLED'] = 'false'",
        "asked(conf=conf)",
        "del os.environ['SPARK_EVENTS_ENABLED']",
        "asked(conf=conf)",
        "asked(conf='spark.events.reporter.f.factory.class')",
    ).end()

    assert ended.code == 0, ended.err[-3000:]
    assert ended.out.splitlines() == [
        *3 * ["[] False False"],
        "['spark-events-compile'] True True",
        "[] False True",
    ]
    assert "of this Spark" not in ended.err


@pytest.mark.extended
def test_attaching_within_attach(tmp_path: Path) -> None:
    """A signal handler that attaches, and interrupts ``attach``, is told so; it does not wait for itself."""
    ended = run(
        tmp_path,
        "from spark_events.sources.attaching import attachment as module",
        "usual, handler = module._start, []",
        "def interrupted(*arguments):",
        "    handler.append(spark_events.attach(spark, conf=conf))",
        "    return usual(*arguments)",
        "module._start = interrupted",
        "attachment = spark_events.attach(spark, conf=conf)",
        "print(attachment.active, handler[0].active, spark_events.attach(spark) is attachment)",
    ).end()

    assert ended.code == 0, ended.err[-3000:]
    assert ended.out.splitlines() == ["True False True"]
    assert ended.err.count("attach was called in the middle of attach") == 1


@pytest.mark.extended
def test_a_driver_that_has_too_many_open_files(tmp_path: Path) -> None:
    """Spark's JVM that cannot be reached for that is not gone: what it has is told once there is room."""
    ended = run(
        tmp_path,
        "from spark_events.sources.driver import source",
        "usual, refused = source.DriverBridge.drain, [OSError(24, 'Too many open files')] * 2",
        "again = threading.Event()",
        "def drain(*arguments):",
        "    if refused:",
        "        raise refused.pop()",
        "    again.set()",
        "    return usual(*arguments)",
        "source.DriverBridge.drain, source._SHORTAGE_S = drain, 0.01",
        "attachment = spark_events.attach(spark, conf=conf)",
        "spark.sparkContext.parallelize([1]).count()",
        "print(again.wait(60))",
    ).end()

    assert ended.code == 0, ended.err[-3000:]
    assert ended.out.splitlines() == ["True"]
    assert ended.err.count("cannot reach Spark's JVM") == 1
    assert "JVM is gone" not in ended.err
    assert statuses(file_events(tmp_path / "events"), "application") == ["CREATED", "RUNNING", "FINISHED"]
    assert "FINISHED" in statuses(file_events(tmp_path / "events"), "job")
