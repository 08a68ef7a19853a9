"""Failures as Spark writes them, in its own words of several versions."""

from __future__ import annotations

import http.client
import socket
import threading
import time
import traceback
import urllib.error
from dataclasses import replace
from email.message import Message

import pytest

from spark_events.api import CodePlace, Failure, FailureContext, FailureEnricher
from spark_events.listeners.failures.enrichers import Enrichers, load_enrichers
from spark_events.listeners.failures.failure_events import in_one_line
from spark_events.listeners.failures.failure_type import FailureTypeEnricher
from spark_events.listeners.failures.failures import (
    parse_failure,
    parse_json_exception,
    place_of_call_site,
    thrown_by_task,
)
from spark_events.listeners.failures.python_crash import CRASHED
from spark_events.listeners.long_texts import shorten
from spark_events.runtime.log_once import OnceLog
from tests.support.plugins import (
    BlockingEnricher,
    OddEnricher,
    OddLabelsEnricher,
    RaisingEnricher,
    SlowLabelEnricher,
)

STAGE_FAILURE = (
    "org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 8.0 failed 1 times, "
    "most recent failure: Lost task 1.0 in stage 8.0 (TID 418) (192.0.2.2 executor driver): "
    "java.lang.ArithmeticException: / by zero\n\tat a.B.c(B.scala:1)\n\nDriver stacktrace:"
)
GENERATED = "org.apache.spark.sql.catalyst.expressions.GeneratedClass"
OLD_STAGE_FAILURE = (
    "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: Lost task 0.0 "
    "in stage 1.0 (TID 1, localhost): java.lang.RuntimeException: got a 3, failing\n\tat x.Y.z(Y.scala:9)"
)
SPARK_4 = "org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] boom SQLSTATE: P0001\n\tat a.B.c(B.scala:1)"
WRITE_FAILED = (
    "Lost task 0.0 in stage 14.0 (TID 15) (localhost executor driver): org.apache.spark.SparkException: "
    "[TASK_WRITE_FAILED] Task failed while writing rows to file:/data/x. SQLSTATE: 58030\n\tat a.B.c(B.scala:1)"
)
WRITE_FAILED_BY = (
    f"{WRITE_FAILED}\nCaused by: {SPARK_4}\n\t... 15 more\n\nDriver stacktrace:\n\tat a.B.d(B.scala:2)"
)
OLD_WRITE_FAILED_BY = (
    "Lost task 0.0 in stage 1.0 (TID 1, localhost): org.apache.spark.SparkException: Task failed while writing "
    "rows.\n\tat a.B.c(B.scala:1)\nCaused by: java.lang.RuntimeException: too much\n\tat x.Y.z(Y.scala:9)\n\t... 8 more"
)
PYTHON = (
    "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
    '  File "app.py", line 3, in f\n    raise KeyError("x")\n'
    "During handling of the above exception, another exception occurred:\n\n"
    "Traceback (most recent call last):\n"
    '  File "app.py", line 5, in f\n    raise ValueError("no customer: 7")\n'
    "ValueError: no customer: 7\n\n\tat org.apache.spark.api.python.BasePythonRunner.x(Y.scala:1)"
)
PYSPARK = (
    "Traceback (most recent call last):\n"
    '  File "app.py", line 4, in <module>\n    spark.read.parquet("orders")\n'
    "pyspark.errors.exceptions.captured.AnalysisException: [PATH_NOT_FOUND] Path does not exist: orders. "
    "SQLSTATE: 42K03\n"
)
PASSED_ON = (
    "py4j.Py4JException: An exception was raised by the Python Proxy. Return Message: "
    "Traceback (most recent call last):\n"
    '  File "app.py", line 9, in write\n    frame.count()\n'
    "py4j.protocol.Py4JJavaError: An error occurred while calling o7.count.\n: "
)
OF_JAVA = f"{PASSED_ON}java.lang.IllegalStateException: no lease\n\tat a.B.c(B.scala:1)\n"
LOST = (
    f"{PASSED_ON}org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 1.0 failed 1 "
    "times, most recent failure: Lost task 1.0 in stage 1.0 (TID 3) (127.0.0.1 executor 0): ExecutorLostFailure "
    "(executor 0 exited caused by one of the running tasks) Reason: Command exited with code 137\n"
    "Driver stacktrace:\n\tat org.apache.spark.X.y(X.scala:1)"
)
IN_A_TASK = OF_JAVA.replace("no lease", "x") + PYTHON
PLAIN = "somebody pulled the plug"


@pytest.mark.parametrize(
    ("text", "exception_type", "message", "error_class", "sql_state"),
    [
        (STAGE_FAILURE, "java.lang.ArithmeticException", "/ by zero", None, None),
        (OLD_STAGE_FAILURE, "java.lang.RuntimeException", "got a 3, failing", None, None),
        (SPARK_4, "org.apache.spark.SparkRuntimeException", "boom", "USER_RAISED_EXCEPTION", "P0001"),
        (WRITE_FAILED_BY, "org.apache.spark.SparkRuntimeException", "boom", "USER_RAISED_EXCEPTION", "P0001"),
        (OLD_WRITE_FAILED_BY, "java.lang.RuntimeException", "too much", None, None),
        (
            WRITE_FAILED,
            "org.apache.spark.SparkException",
            "Task failed while writing rows to file:/data/x.",
            "TASK_WRITE_FAILED",
            "58030",
        ),
        (PYTHON, "ValueError", "no customer: 7", None, None),
        (
            PYSPARK,
            "pyspark.errors.exceptions.captured.AnalysisException",
            "Path does not exist: orders.",
            "PATH_NOT_FOUND",
            "42K03",
        ),
        (OF_JAVA, "java.lang.IllegalStateException", "no lease", None, None),
        (IN_A_TASK, "ValueError", "no customer: 7", None, None),
        (
            LOST,
            None,
            "ExecutorLostFailure (executor 0 exited caused by one of the running tasks) Reason: Command exited with "
            "code 137",
            None,
            None,
        ),
        (PLAIN, None, PLAIN, None, None),
        ("", None, "", None, None),
        ("java.lang.OutOfMemoryError", "java.lang.OutOfMemoryError", "", None, None),
        ("java.lang.RuntimeException: a\nb\n\tat x.Y.z(Y)", "java.lang.RuntimeException", "a\nb", None, None),
    ],
)
def test_parse(
    text: str, exception_type: str | None, message: str, error_class: str | None, sql_state: str | None
) -> None:
    """What was thrown is found under what Spark wraps around it; the whole text stays as the stack trace."""
    failure = parse_failure(text)

    assert replace(failure, code=None) == Failure(message, exception_type, text, error_class, sql_state)


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (parse_failure(PYTHON), "ValueError: no customer: 7"),
        (Failure("'customer'", "KeyError"), "KeyError: 'customer'"),
        (parse_failure(STAGE_FAILURE), "ArithmeticException: / by zero"),
        (parse_failure(SPARK_4), "SparkRuntimeException: boom"),
        (parse_failure(PYSPARK), "AnalysisException: Path does not exist: orders."),
        (Failure("", "java.lang.OutOfMemoryError"), "OutOfMemoryError"),
        (Failure(PLAIN), PLAIN),
        (Failure(""), "it said nothing"),
        (Failure("\n \nThe executor is gone\nfor good"), "The executor is gone"),
        (
            Failure(
                "ExecutorLostFailure (executor 2 exited) Reason: \n\nThe executor with id 2 exited\nwith 1"
            ),
            "ExecutorLostFailure (executor 2 exited) Reason: The executor with id 2 exited",
        ),
        (Failure("RuntimeException: twice", "java.lang.RuntimeException"), "RuntimeException: twice"),
        (Failure("java.io.IOException: twice", "java.io.IOException"), "java.io.IOException: twice"),
        (Failure("Errors everywhere", "x.Error"), "Error: Errors everywhere"),
        (
            Failure(
                "no", "shop.errors.BadRow", "Traceback (most recent call last):\nshop.errors.BadRow: no\n"
            ),
            "shop.errors.BadRow: no",
        ),
    ],
)
def test_a_failure_in_one_line(failure: Failure, said: str) -> None:
    """The class that was thrown, and the first line that says anything; neither is said twice."""
    assert in_one_line(failure) == said


def test_the_first_line_of_a_message_is_blank() -> None:
    """As of a text that begins with a line feed, in Python."""
    raised = (
        'Traceback (most recent call last):\n  File "app.py", line 5, in f\n    x\nValueError: \n  no rows\n'
    )
    of_java = "\n\tat org.apache.spark.api.python.BasePythonRunner.x(Y.scala:1)"
    assert parse_failure(raised + of_java).message == "no rows"
    assert parse_failure(raised.replace("  no rows\n", "") + of_java).message == ""


def test_a_fetch_that_failed() -> None:
    """It has no message of its own, but its cause has; and what failed too often is what failed last."""
    thrown = (
        "org.apache.spark.shuffle.FetchFailedException\n\tat a.B.c(B.scala:1)\nCaused by: org.apache.spark."
        "ExecutorDeadException: [INTERNAL_ERROR_NETWORK] The relative remote executor(Id: 0), which maintains the "
        "block data to fetch is dead. SQLSTATE: XX000\n\tat a.B.d(B.scala:2)\n\t... 11 more\n"
    )
    too_often = (
        "Job aborted due to stage failure: ResultStage 3 (collect at app.py:16) has failed the maximum allowable "
        f"number of times: 4. Most recent failure reason:\n{thrown}"
    )
    # As a driver prints it that did not catch it.
    passed_on = (
        'Traceback (most recent call last):\n  File "/jobs/app.py", line 16, in <module>\n    rows.count()\n'
        "py4j.protocol.Py4JJavaError: An error occurred while calling z:a.B.collectAndServe.\n"
        f": org.apache.spark.SparkException: {too_often}"
    )
    for text in (thrown, too_often, passed_on):
        failure = parse_failure(text)
        assert failure.exception_type == "org.apache.spark.shuffle.FetchFailedException"
        assert failure.message == (
            "ExecutorDeadException: The relative remote executor(Id: 0), which maintains the block data to fetch is dead."
        )


WORKER = "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: "
PRICE = '  File "/jobs/app.py", line 15, in price\n    raise KeyError(v)\n'
LOST_TASK = (
    "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: "
    "Lost task 0.0 in stage 1.0 (TID 1) (host executor driver): "
)


@pytest.mark.parametrize(
    ("reason", "exception_type", "message", "line", "label"),
    [
        (
            f"{WORKER}Traceback (most recent call last):\n{PRICE}KeyError: 'no price'\n SQLSTATE: 38000",
            "KeyError", "'no price'", 15, "USER",
        ),
        (
            "py4j.Py4JException: An exception was raised by the Python Proxy. Return Message: "
            f"Traceback (most recent call last):\n{PRICE}KeyError: 'no price'\n",
            "KeyError", "'no price'", 15, "USER",
        ),
        (
            "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== DataFrame ==\n"
            '"div" was called from\n/jobs/app.py:10\n',
            None, "Division by zero.\n== DataFrame ==\n\"div\" was called from\n/jobs/app.py:10", 10, "USER",
        ),
        (
            f"{LOST_TASK}org.apache.spark.SparkArithmeticException: Division by zero.\n\tat a.B.c(B.scala:1)\n",
            "org.apache.spark.SparkArithmeticException", "Division by zero.", 29, "USER",
        ),
        (
            f"{LOST_TASK}java.net.ConnectException: Connection refused\n\tat a.B.c(B.scala:1)\n",
            "java.net.ConnectException", "Connection refused", 29, "SYSTEM",
        ),
    ],
    ids=["a UDF", "foreachBatch", "SQL", "a task", "a machine"],
)  # fmt: skip
def test_what_a_query_failed_with_ends_the_program(
    reason: str, exception_type: str | None, message: str, line: int, label: str
) -> None:
    """The commonest end of a streaming job: ``awaitTermination`` raises, with random ids in its message."""
    passed_on = "pyspark.errors.exceptions.captured.StreamingQueryException"
    text = (
        'Traceback (most recent call last):\n  File "/jobs/app.py", line 29, in <module>\n    q.awaitTermination()\n'
        f"{passed_on}: [STREAM_FAILED] Query [id = 8f-1, runId = 2c-4] terminated with exception: {reason}"
        " SQLSTATE: XXKST\n=== Streaming Query ===\nIdentifier: q [id = 8f-1, runId = 2c-4]\n"
    )
    failure = parse_failure(text)
    assert failure.exception_type == (exception_type or passed_on)
    assert (failure.message, failure.code and failure.code.line_number) == (message, line)
    assert failure.stacktrace == text
    assert FailureTypeEnricher().process_failure(failure, FailureContext("application", {})) == {
        "type": label
    }


def test_a_query_that_fails_while_the_failure_of_another_is_handled() -> None:
    """The program ends with the last one."""
    raised = (
        'Traceback (most recent call last):\n  File "/jobs/app.py", line {line}, in <module>\n    q.awaitTermination()\n'
        "pyspark.errors.exceptions.captured.StreamingQueryException: [STREAM_FAILED] Query [id = {line}, runId = 2] "
        "terminated with exception: [X] {said} SQLSTATE: 22012 SQLSTATE: XXKST\n=== Streaming Query ===\n"
        "Identifier: q [id = {line}, runId = 2]\n"
    )
    link = "\nDuring handling of the above exception, another exception occurred:\n\n"
    failure = parse_failure(raised.format(line=7, said="first") + link + raised.format(line=9, said="second"))
    assert (failure.message, failure.code and failure.code.line_number) == ("second", 9)


@pytest.mark.parametrize(
    ("thrown", "said"),
    [
        (
            'Traceback (most recent call last):\n  File "/jobs/app.py", line 9, in load\n    get(url)\n'
            "requests.exceptions.ConnectionError: refused\n",
            "requests.exceptions.ConnectionError: refused",
        ),
        ("java.net.ConnectException: refused\n\tat a.B.c(B.java:1)\n", "ConnectException: refused"),
    ],
    ids=["Python", "Java"],
)
def test_the_class_of_what_a_driver_passes_on(thrown: str, said: str) -> None:
    """As it is said of its job: of Python's, as tracebacks do."""
    text = (
        'Traceback (most recent call last):\n  File "/jobs/app.py", line 29, in <module>\n    rows.count()\n'
        "py4j.protocol.Py4JJavaError: An error occurred while calling z:a.B.collectAndServe.\n"
        f": org.apache.spark.SparkException: {LOST_TASK}{thrown}"
    )
    assert in_one_line(parse_failure(text)) == said


@pytest.mark.parametrize(
    ("place", "code"),
    [
        ("/jobs/app.py:13", CodePlace("/jobs/app.py", 13, "")),
        ("C:\\jobs\\app.py:13", CodePlace("C:\\jobs\\app.py", 13, "")),
        ("/venv/lib/python3.11/site-packages/koalas/frame.py:13", None),
        ("org.shop.App$.main(App.scala:12)", None),
        ("line 1 in cell [2]", None),
    ],
)
def test_where_an_expression_is_from(place: str, code: CodePlace | None) -> None:
    """Spark 4 says it of DataFrames; of a library's or Scala's, it is no place in the user's Python code."""
    said = f'[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== DataFrame ==\n"div" was called from\n{place}\n'
    assert parse_failure(said).code == code
    assert (
        parse_failure(f"org.apache.spark.SparkArithmeticException: {said}\n\tat a.B.c(B.scala:1)").code
        == code
    )


@pytest.mark.parametrize(
    ("short", "code"),
    [
        ("collect at /jobs/app.py:16", CodePlace("/jobs/app.py", 16, "")),
        ("start at NativeMethodAccessorImpl.java:0", None),
        ("save at <unknown>:0", None),
        ("save at <stdin>:2", CodePlace("<stdin>", 2, "")),
        ("count at /venv/lib/python3.11/site-packages/koalas/frame.py:13", None),
        (None, None),
    ],
)
def test_a_call_site(short: str | None, code: CodePlace | None) -> None:
    assert place_of_call_site(short) == code


def test_parse_json_exception() -> None:
    """JobEnd's exception has its frames in a list."""
    frames = [
        {"Declaring Class": "a.B", "Method Name": "c", "File Name": "B.scala", "Line Number": 7},
        {"Declaring Class": "org.apache.spark.executor.Executor$TaskRunner", "Method Name": "run"},
    ]
    failure = parse_json_exception({"Message": "[DIVIDE_BY_ZERO] no SQLSTATE: 22012", "Stack Trace": frames})

    assert (failure.message, failure.error_class, failure.sql_state) == ("no", "DIVIDE_BY_ZERO", "22012")
    assert failure.stacktrace is not None
    assert failure.stacktrace.endswith(
        "\n\tat a.B.c(B.scala:7)\n\tat org.apache.spark.executor.Executor$TaskRunner.run(Unknown Source)"
    )
    assert thrown_by_task(failure)
    assert not thrown_by_task(Failure("x"))


def test_long_text_is_cut_and_said() -> None:
    """A stack trace of megabytes does not travel whole."""
    assert shorten("x" * 10, 4) == "xxxx… (6 more characters)"


OF_MACHINES = (
    ConnectionResetError(104, "Connection reset by peer"),
    BrokenPipeError("no more"),
    ConnectionAbortedError("net"),
    TimeoutError("timed out"),
    socket.gaierror(-2, "Name or service not known"),
    OSError(24, "Too many open files", "/data/x"),
    OSError(28, "No space left on device"),
    OSError(116, "Stale file handle"),
    urllib.error.URLError(ConnectionRefusedError(111, "Connection refused")),
    urllib.error.URLError(OSError(113, "No route to host")),
    urllib.error.URLError(TimeoutError("timed out")),
    urllib.error.URLError(socket.gaierror(-3, "Temporary failure in name resolution")),
    http.client.RemoteDisconnected("no response"),
)
OF_CODE = (
    FileNotFoundError(2, "No such file or directory", "/data/x"),
    PermissionError(13, "Permission denied", "/data/x"),
    urllib.error.URLError("unknown url type: htp"),
    urllib.error.HTTPError("http://rates/", 404, "Not Found", Message(), None),
    ValueError("timed out> 3"),
    RuntimeError("row 5 has [Errno 5]"),
)


def raised_in_python(error: Exception) -> Failure:
    """Return what is read of an error that a worker prints."""
    named = "".join(traceback.format_exception_only(error))
    return parse_failure(PYTHON.replace("ValueError: no customer: 7\n", named))


@pytest.mark.parametrize(
    ("failure", "label"),
    [
        (parse_failure(PYTHON), "USER"),
        (parse_failure(STAGE_FAILURE), "USER"),
        (parse_failure(SPARK_4), "USER"),
        (Failure("x", "java.lang.OutOfMemoryError"), "SYSTEM"),
        (Failure("x", "java.io.IOException", "java.io.IOException: No space left on device"), "SYSTEM"),
        (Failure("x", sql_state="58030"), "SYSTEM"),
        (Failure("x", "org.apache.hadoop.fs.ParentNotDirectoryException"), "USER"),
        (Failure("x", error_class="STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE", sql_state="XXKST"), "USER"),
        (Failure(PLAIN), "UNKNOWN"),
        (
            parse_failure(
                OLD_STAGE_FAILURE.replace(
                    "x.Y.z(Y.scala:9)", f"{GENERATED}$Codegen1.processNext(Unknown Source)"
                )
            ),
            "USER",
        ),
        (parse_failure(OLD_STAGE_FAILURE), "UNKNOWN"),
        (
            Failure(
                "Existing key_schema", error_class="X", stacktrace="[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] x"
            ),
            "USER",
        ),
        (
            Failure(
                "An error occurred during loading state.",
                sql_state="58030",
                stacktrace="[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] x\nCaused by: [STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE]",
            ),
            "USER",
        ),
        (Failure("An error occurred during loading state.", sql_state="58030"), "SYSTEM"),
        (
            Failure(
                "assertion failed: There are [1] sources in the checkpoint offsets and now there are [2] sources "
                "requested by the query. Cannot continue."
            ),
            "USER",
        ),
        (Failure("", exit_signal="SIGTERM"), "SYSTEM"),
        (
            Failure("", "KeyboardInterrupt", "Traceback (most recent call last):", exit_signal="SIGINT"),
            "UNKNOWN",
        ),
        (Failure("the driver's JVM is gone"), "SYSTEM"),
        (Failure("the driver's JVM is gone (signal 9, exit code 137)"), "SYSTEM"),
        (
            Failure("the driver's JVM is gone (exit code 50, after an exception that nothing in it caught)"),
            "SYSTEM",
        ),
        (Failure("the driver's JVM is gone (exit code 7)"), "UNKNOWN"),
        (Failure("the driver's JVM is gone, ended from within\n\tat java.lang.System.exit"), "UNKNOWN"),
        (Failure(CRASHED), "SYSTEM"),
        (Failure(f"{CRASHED}: Fatal Python error: Segmentation fault"), "UNKNOWN"),
        *((raised_in_python(error), "SYSTEM") for error in OF_MACHINES),
        *((raised_in_python(error), "USER") for error in OF_CODE),
    ],
)
def test_type_label(failure: Failure, label: str) -> None:
    """The built-in enricher tells user from system, and says when it does not know."""
    context = FailureContext("job", {})

    assert FailureTypeEnricher().process_failure(failure, context) == {"type": label}


def test_enrichers_that_misbehave(caplog: pytest.LogCaptureFixture) -> None:
    """One that raises or blocks costs its own labels; one that blocks is not called again."""
    parts: list[FailureEnricher] = [RaisingEnricher(), BlockingEnricher(), OddEnricher()]
    enrichers = Enrichers(parts, OnceLog())
    expected = {"null": "<null>", "empty": "<empty>", "kind": "job"}

    assert enrichers.labels(Failure("x"), FailureContext("job", {})) == expected
    started = time.monotonic()
    assert enrichers.labels(Failure("x"), FailureContext("job", {})) == expected
    assert time.monotonic() - started < 0.9
    assert caplog.text.count("is not called again") == 1


def test_labels_that_misbehave(caplog: pytest.LogCaptureFixture) -> None:
    """One whose text raises is left out alone; one that takes too long costs its enricher's."""
    parts: list[FailureEnricher] = [OddLabelsEnricher(), SlowLabelEnricher(), OddEnricher()]
    enrichers = Enrichers(parts, OnceLog())
    labels = enrichers.labels(Failure("x"), FailureContext("job", {}))

    assert labels.pop("kind") == "job"
    assert (labels["number"], labels["long"]) == ("1", "x" * 1_024)
    assert len(labels) == 50 - 2 + 2  # two of its first fifty raise, and another enricher has two
    assert max(map(len, labels)) == 1_024
    assert caplog.text.count("gave a label that raised ValueError") == 1
    assert "gave 1,005 labels, of which 50 are reported" in caplog.text
    assert caplog.text.count("is not called again") == 1


def test_unknown_enricher() -> None:
    """The error names those that there are."""
    listed = ["typ", "tests.support.plugins:Collecting", "tests.support.plugins:ExitingEnricher"]
    _, errors = load_enrichers(listed)

    assert "'typ' is not valid; expected one of type, or module:Class" in str(errors[0])
    assert "is not a subclass of spark_events.api.failure.FailureEnricher" in str(errors[1])
    assert (
        "spark.events.failure.enrichers: 'tests.support.plugins:ExitingEnricher' raised SystemExit: 2"
        in str(errors[2])
    )


def test_enrichers_are_asked_while_python_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """From Python 3.12 on no thread can be started then; the failure that ended it is labelled all the same."""
    enrichers = Enrichers([FailureTypeEnricher()], OnceLog())

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)

    assert enrichers.labels(parse_failure(PYTHON), FailureContext("job", {})) == {"type": "USER"}


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        " " * 65_000,
        "\n" * 65_000,
        "Lost task (TID " * 4_300,
        "Lost task " * 6_500,
        "Lost task " + "(TID 1) " * 8_000,
        "a." * 32_000,
        "[A" * 32_000,
        "SQLSTATE: " * 6_500,
        "org.apache.spark.SparkException: Task failed while writing rows" + "\nCaused by" * 6_000,
        "x.Y\n\tat z" + "\nCaused by: x.Y\n\tat z" * 3_000,
        "the maximum allowable number of times: 4. Most recent failure reason: " * 900,
        '" was called from\n' * 3_500,
        "x" * 60_000 + ":1",
    ],
    ids=lambda text: text[:12].strip() or "blanks",
)
def test_a_message_on_which_a_pattern_could_run_away(text: str) -> None:
    """The search holds up all of the driver's Python: it was minutes for one of these."""
    assert parse_failure(text).stacktrace


@pytest.mark.parametrize(
    ("frames", "place"),
    [
        ([("app.py", 3, "f"), ("jobs/price.py", 9, "price")], ("jobs/price.py", 9, "price")),
        (
            [
                ("/opt/spark/python/lib/pyspark.zip/pyspark/worker.py", 1, "main"),
                ("/home/me/app.py", 7, "<lambda>"),
                ("/usr/lib/python3.11/json/decoder.py", 337, "decode"),
            ],
            ("/home/me/app.py", 7, "<lambda>"),
        ),
        (
            [
                ("/venv/lib/python3.11/site-packages/pyspark/worker.py", 1, "main"),
                ("/venv/lib/python3.11/site-packages/mine/jobs.py", 4, "run"),
            ],
            ("/venv/lib/python3.11/site-packages/mine/jobs.py", 4, "run"),
        ),
        ([("/venv/lib/python3.11/site-packages/pyspark/worker.py", 1, "main")], None),
        (
            [("/app/pyspark/etl.py", 5, "run"), ("/libs/pyspark/sql/dataframe.py", 9, "collect")],
            ("/app/pyspark/etl.py", 5, "run"),
        ),
        ([("C:\\Spark\\python\\pyspark\\new_module.py", 9, "collect")], None),
        (
            [("jobs/price.py", 9, "price"), ("pandas/_libs/tslibs/parsing.pyx", 666, "parse")],
            ("jobs/price.py", 9, "price"),
        ),
        (
            [("jobs/price.py", 9, "f"), ("<__array_function__ internals>", 5, "dot")],
            ("jobs/price.py", 9, "f"),
        ),
        (
            [("/home/me/app.py", 7, "f"), ("/usr/lib64/python3.9/json/decoder.py", 337, "decode")],
            ("/home/me/app.py", 7, "f"),
        ),
        ([("pyarrow/error.pxi", 92, "check_status")], ("pyarrow/error.pxi", 92, "check_status")),
        ([("/libs/py4j/protocol.py", 9, "get_return_value")], None),
        (
            [
                ("/home/me/app.py", 7, "price"),
                (
                    "/tmp/spark-1/userFiles-2/spark_events_task.zip/spark_events/task/measured_functions.py",
                    4,
                    "w",
                ),
            ],
            ("/home/me/app.py", 7, "price"),
        ),
        (
            [
                ("/home/me/app.py", 7, "go"),
                ("/src/spark-events/spark_events/sources/failed_starts.py", 4, "start"),
            ],
            ("/home/me/app.py", 7, "go"),
        ),
        ([("/srv/spark_events/app.py", 5, "run")], ("/srv/spark_events/app.py", 5, "run")),
    ],
    ids=[
        "innermost",
        "no library",
        "the user's is installed",
        "PySpark's alone",
        "the user's folder has its name",
        "of a newer PySpark",
        "compiled by Cython",
        "made by NumPy",
        "in lib64",
        "nothing but compiled",
        "py4j's",
        "ours, which Spark ships",
        "ours, in a clone",
        "the user's folder has our name",
    ],
)
def test_the_users_frame(frames: list[tuple[str, int, str]], place: tuple[str, int, str] | None) -> None:
    """Where Python code raised it: neither in PySpark, nor in what that code calls."""
    shown = "".join(f'  File "{path}", line {line}, in {name}\n    x\n' for path, line, name in frames)
    failure = parse_failure(f"Traceback (most recent call last):\n{shown}ValueError: boom\n")
    assert failure.code == (CodePlace(*place) if place else None)


def test_java_has_no_frame_of_the_users() -> None:
    assert parse_failure(STAGE_FAILURE).code is None


READING = (
    "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///data/a.json.  SQLSTATE: KD001\n"
    "\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecutionErrors.scala:1)\n"
    "Caused by: "
)
MALFORMED = (
    "org.apache.spark.SparkException: [MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are "
    "detected in record parsing: [null]. SQLSTATE: 22023\n\tat a.B.c(B.scala:1)"
)
NO_PARQUET = (
    "java.lang.RuntimeException: file:/data/a is not a Parquet file. Expected magic number\n\tat a.B.c(B:1)"
)
OF_BYTES = "java.io.IOException: Input/output error\n\tat a.B.c(B:1)"


@pytest.mark.parametrize(
    ("cause", "said", "label"),
    [
        (
            MALFORMED,
            "SparkException: Malformed records are detected in record parsing: [null].",
            "USER",
        ),
        (NO_PARQUET, "RuntimeException: file:/data/a is not a Parquet file. Expected magic number", "USER"),
        (OF_BYTES, "IOException: Input/output error", "UNKNOWN"),
    ],
)
def test_why_a_file_cannot_be_read(cause: str, said: str, label: str) -> None:
    """Spark says only which; the reason is in what caused that."""
    for before in ("", "org.apache.spark.SparkException: ", OLD_STAGE_FAILURE.split("java.", 1)[0]):
        failure = parse_failure(before + READING + cause)
        assert failure.message == f"Encountered error while reading file file:///data/a.json: {said}"
        assert failure.error_class == "FAILED_READ_FILE.NO_HINT"
        assert FailureTypeEnricher().process_failure(failure, FailureContext("job", {})) == {"type": label}


@pytest.mark.parametrize(
    ("thrown", "label"),
    [
        ("SparkRuntimeException: [DUPLICATED_MAP_KEY] Duplicate map key 1 was found", "USER"),
        ("SparkDateTimeException: [CANNOT_PARSE_TIMESTAMP] Text 'x' could not be parsed", "USER"),
        ("SparkException: Parquet column cannot be converted in file file:/a. Column: [id]", "USER"),
        ("SparkException: [TASK_WRITE_FAILED] Task failed while writing rows", "UNKNOWN"),
        ("SparkRuntimeException: [FAILED_RENAME_PATH] Failed to rename", "UNKNOWN"),
    ],
)
def test_labels_of_spark_3_5_which_prints_no_sqlstate(thrown: str, label: str) -> None:
    failure = parse_failure(
        f"{OLD_STAGE_FAILURE.split('java.', 1)[0]}org.apache.spark.{thrown}\n\tat a.B.c(B:1)"
    )
    assert FailureTypeEnricher().process_failure(failure, FailureContext("job", {})) == {"type": label}


def test_what_python_only_passes_on_has_the_same_label() -> None:
    """Whether Spark tells it of the job, or Python of the program that the job has ended."""
    context = FailureContext("job", {})
    thrown = "java.lang.IllegalStateException: no lease\n\tat a.B.c(B.scala:1)\n"
    for text in (thrown, OF_JAVA):
        assert FailureTypeEnricher().process_failure(parse_failure(text), context) == {"type": "UNKNOWN"}


def test_a_writer_of_rows_in_python_is_in_a_task() -> None:
    """Its thread is none of the executor's."""
    text = (
        "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):\n"
        '  File "app.py", line 35, in process\n    raise LookupError("refused")\nLookupError: refused\n'
        " SQLSTATE: 38000\n"
        "\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner:1)\n"
        "\tat org.apache.spark.sql.execution.python.streaming.WriterThread.run(PythonForeachWriter.scala:54)"
    )
    assert thrown_by_task(parse_failure(text))
    assert not thrown_by_task(parse_failure(OF_JAVA))


def test_the_line_that_called_java() -> None:
    """Where Java throws, nothing of the user's is nearer."""
    assert parse_failure(OF_JAVA).code == CodePlace("app.py", 9, "write")
