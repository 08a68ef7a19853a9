"""Whatever a configuration or a plugin does wrong: one clear error, the others go on, the job ends well."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from tests.support.applications import App
from tests.support.file_log import file_events, statuses
from tests.support.paths import APPS
from tests.support.waiting import free_port

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("java")]


@pytest.mark.extended
def test_everything_wrong_at_once(tmp_path: Path) -> None:
    """A dozen broken reporters beside a good one: each has its one error, and the good one has all events."""
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    port = taken.getsockname()[1]
    (tmp_path / "a-file").touch()
    bad = {
        "unknown.factory.class": "otpl",
        "missing.path": "/tmp",
        "duration.factory.class": "otlp",
        "duration.exporter.timeout": "10 parsecs",
        "unwritable.factory.class": "file_log",
        "unwritable.path": str(tmp_path / "a-file" / "below"),
        "away.factory.class": "otlp",
        "away.exporter.endpoint": f"http://127.0.0.1:{free_port()}",
        "constructor.factory.class": "tests.support.plugins:RaisesInConstructor",
        **{
            f"raise-{m}.factory.class": "tests.support.plugins:Raising"
            for m in ("create", "open", "all", "close")
        },
        **{f"raise-{m}.in": m for m in ("create", "open", "all", "close")},
        **{
            f"block-{m}.factory.class": "tests.support.plugins:Blocking"
            for m in ("create", "open", "event", "close")
        },
        **{f"block-{m}.in": m for m in ("create", "open", "event", "close")},
    }
    conf = {
        "spark.events.reporter.good.factory.class": "file_log",
        "spark.events.reporter.good.path": str(tmp_path / "events"),
        "spark.metrics.reporter.taken.factory.class": "prometheus",
        "spark.metrics.reporter.taken.port": str(port),
        "spark.events.failure.enrichers": "type,tests.support.plugins:RaisingEnricher,tests.support.plugins:BlockingEnricher",
        "spark.events.close.timeout": "2s",
        **{f"spark.events.reporter.{key}": value for key, value in bad.items()},
    }
    command = [sys.executable, str(APPS / "ending.py"), "raise", "--attach"]
    run = App(command, conf, tmp_path).end()
    taken.close()

    assert run.code == 1
    assert "ValueError: nobody handles this" in run.err
    events = file_events(tmp_path / "events")
    assert statuses(events, "application") == ["CREATED", "RUNNING", "FAILED"]
    expected = [
        "spark.events.reporter.unknown.factory.class: unknown event reporter 'otpl'; did you mean 'otlp'? installed: console, ",
        "spark.events.reporter.missing.factory.class: missing",
        "spark.events.reporter.duration.exporter.timeout: '10 parsecs' is not valid; expected a duration",
        "spark.events.reporter.unwritable.path",
        "event reporter 'away' could not send",
        "RuntimeError: no constructor today",
        "event reporter 'raise-create' is not used: RuntimeError: no create today",
        "event reporter 'raise-open' is not used: RuntimeError: no open today",
        "event reporter 'raise-all' is not used: RuntimeError: no open today",
        "event reporter 'raise-close' raised in close",
        "event reporter 'away' lost 8 items",
        "event reporter 'block-event' did not close in time",
        "event reporter 'block-close' did not close in time",
        f"spark.metrics.reporter.taken.port: cannot listen on port {port} of",
        "failure enricher RaisingEnricher raised",
        "is not called again",
    ]
    missing = [text for text in expected if run.err.count(text) != 1]
    assert not missing, f"not exactly once: {missing}\n{run.err}"
    lines = [line for line in run.err.splitlines() if any(text in line for text in expected)]
    causes = ("RuntimeError: ", "OSError: ")  # the last line of a traceback below a message
    unsigned = [line for line in lines if not line.startswith(("spark-events: ", *causes))]
    assert unsigned == []


@pytest.mark.extended
def test_strict_attach_raises_all_mistakes(tmp_path: Path) -> None:
    """``attach(strict=True)`` names all mistakes in one error."""
    script = tmp_path / "strict.py"
    script.write_text(
        "from pyspark.sql import SparkSession\n"
        "import spark_events\n"
        "spark = SparkSession.builder.master('local[1]').getOrCreate()\n"
        "try:\n"
        "    spark_events.attach(spark, strict=True)\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, len(error.problems))\n"
        "spark.stop()\n"
        "try:\n"
        "    spark_events.attach(spark)\n"
        "except TypeError as error:\n"
        "    print('stopped')\n"
    )
    conf = {
        "spark.events.reporter.a.factory.class": "nothing",
        "spark.events.reporter.b.factory.class": "file_log",
        "spark.events.checkpoint.sla": "soon",
    }
    run = App([sys.executable, str(script)], conf, tmp_path).end()

    assert run.code == 0, run.err[-3000:]
    assert run.out.splitlines() == ["ConfigError 3", "stopped"]


@pytest.mark.extended
def test_attaching_once_more(tmp_path: Path) -> None:
    """A second configuration is taken, or it is said that it is not; without a reporter nothing is attached."""
    script = tmp_path / "again.py"
    script.write_text(
        "from pyspark.sql import SparkSession\n"
        "import spark_events\n"
        "spark = SparkSession.builder.master('local[1]').appName('again').getOrCreate()\n"
        "nothing = spark_events.attach(spark)\n"
        "print(nothing.active, nothing)\n"
        "try:\n"
        "    spark_events.attach(spark, strict=True)\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
        f"conf = {{'spark.events.reporter.f.factory.class': 'file_log', 'spark.events.reporter.f.path': {str(tmp_path / 'a')!r}}}\n"
        "first = spark_events.attach(spark, conf=conf, strict=True)\n"
        "print(first.active, first)\n"
        "print(spark_events.attach(spark, conf=conf, strict=True) is first, spark_events.attach(spark) is first)\n"
        f"other = {{**conf, 'spark.events.reporter.f.path': {str(tmp_path / 'b')!r}}}\n"
        "print(spark_events.attach(spark, conf=other) is first)\n"
        "try:\n"
        "    spark_events.attach(spark, conf=other, strict=True)\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
        "first.close()\n"
        "second = spark_events.attach(spark, conf=other, strict=True)\n"
        "print(first.active, second.active, second)\n"
        "spark.stop()\n"
        "second.wait_closed()\n"
    )
    run = App([sys.executable, str(script)], {}, tmp_path).end()

    assert run.code == 0, run.err[-3000:]
    lines = run.out.splitlines()
    assert lines[0].startswith("False <Attachment to local-")
    assert lines[0].endswith(": no reporter; not active>")
    assert lines[1].startswith(
        "ConfigError no reporter is configured: set spark.events.reporter.<name>.factory"
    )
    assert lines[2].startswith("True <Attachment to local-")
    assert f": event reporter 'f' to {tmp_path / 'a'}" in lines[2]
    assert lines[3] == "True True"
    assert lines[4] == "True"
    refused = (
        "spark.events.reporter.f.path: this application is already attached with another configuration; call"
    )
    assert lines[5].startswith(f"ConfigError {refused}")
    assert run.err.count(refused) == 1
    assert lines[6].startswith("False True <Attachment to local-")
    assert f"to {tmp_path / 'b'}" in lines[6]
    assert statuses(file_events(tmp_path / "b"), "application") == ["RUNNING", "FINISHED"]  # it is up again


@pytest.mark.extended
def test_a_configuration_of_other_types(tmp_path: Path) -> None:
    """Booleans and numbers are texts as with Spark; the rest is named, and what is right goes on."""
    script = tmp_path / "other_types.py"
    script.write_text(
        "import pathlib\n"
        "from pyspark.sql import SparkSession\n"
        "import spark_events\n"
        "spark = SparkSession.builder.master('local[1]').appName('types').getOrCreate()\n"
        f"path = pathlib.Path({str(tmp_path / 'events')!r})\n"
        "conf = {'spark.events.reporter.f.factory.class': 'file_log', 'spark.events.reporter.f.path': path,\n"
        "  'spark.events.reporter.f.queue.max-items': 500, 'spark.events.task.failures.include-locals': True,\n"
        "  'spark.events.checkpoint.sla': None, 7: 'x'}\n"
        "try:\n"
        "    spark_events.attach(spark, conf=conf, strict=True)\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, len(error.problems))\n"
        "print(spark_events.attach(spark, conf='spark.events.task.enabled=false').active)\n"
        "attachment = spark_events.attach(spark, conf=conf)\n"
        "print(spark_events.attach(spark, conf=conf) is attachment)\n"
        "spark.stop()\n"
        "attachment.wait_closed()\n"
    )
    run = App([sys.executable, str(script)], {}, tmp_path).end()

    assert run.code == 0, run.err[-3000:]
    assert run.out.splitlines() == ["ConfigError 2", "False", "True"]
    assert statuses(file_events(tmp_path / "events"), "application")[-1] == "FINISHED"
    assert "spark.events.checkpoint.sla: a NoneType is not valid; expected a text" in run.err
    assert "conf: a key is a int; expected a text" in run.err
    assert "conf is a str; expected a mapping of keys" in run.err
    assert "Traceback" not in run.err
    assert "another configuration" not in run.err
