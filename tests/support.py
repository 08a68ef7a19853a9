"""What the tests share: servers, Spark applications in processes of their own, and reading what came out."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[1]
SHARED_DATA = REPO.parent / "shared" / "data" / "event-logs"
APPS = REPO / "tests" / "apps"

Event = dict[str, Any]


def without_jvms_words(err: str) -> list[str]:
    """Return the lines of what came on stderr, but for those of the JVM itself, which are no log."""
    return [line for line in err.splitlines() if not line.startswith(("NOTE: ", "WARNING: Using"))]


def wait_until(condition: Callable[[], Any], what: str, timeout_s: float = 120.0) -> Any:
    """Return the condition's first true value; fail when the time is over, which a busy machine must not reach."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {timeout_s} s: {what}")


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as candidate:
        candidate.bind(("127.0.0.1", 0))
        return int(candidate.getsockname()[1])


def http_get(url: str, headers: Mapping[str, str] | None = None) -> str:
    """Return the body of a page; an empty text while nobody answers."""
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=dict(headers or {})), timeout=5
        ) as page:
            return str(page.read().decode())
    except (urllib.error.URLError, ConnectionError):
        return ""


# -- what came out ------------------------------------------------------------------------------------------


def file_events(folder: Path) -> list[Event]:
    """Return all events of a file log, in the order in which they were written."""
    files = sorted(folder.glob("*.events.*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def statuses(events: Iterable[Event], kind: str) -> list[str]:
    """Return the new statuses of all jobs of a kind."""
    return [
        event["attributes"]["newJobStatus"]
        for event in events
        if event["eventName"] == "JobStatusChangeEvent" and event["attributes"]["job.kind"] == kind
    ]


def of_name(events: Iterable[Event], name: str, **attributes: Any) -> list[Event]:
    """Return the events of a name, with these attributes; ``__`` stands for a dot."""
    wanted = {key.replace("__", "."): value for key, value in attributes.items()}
    return [
        event
        for event in events
        if event["eventName"] == name and wanted.items() <= event["attributes"].items()
    ]


# -- processes ----------------------------------------------------------------------------------------------


@dataclass
class AppRun:
    """A Spark application that has ended."""

    code: int
    out: str
    err: str


class App:
    """A Spark application in a process of its own, configured by a spark-defaults.conf alone.

    Its output goes to files: a pipe that nobody reads would hold it up.
    """

    def __init__(
        self, command: list[str], conf: Mapping[str, str], folder: Path, stdin: int = subprocess.DEVNULL
    ) -> None:
        conf_dir = folder / "spark-conf"
        conf_dir.mkdir(exist_ok=True)
        lines = [f"{key}  {value}" for key, value in {**_BASE_CONF, **conf}.items()]
        (conf_dir / "spark-defaults.conf").write_text("\n".join(lines) + "\n")
        environment = {
            **os.environ,
            "SPARK_CONF_DIR": str(conf_dir),
            "PYTHONPATH": str(REPO),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        self._out, self._err = folder / "stdout.txt", folder / "stderr.txt"
        with self._out.open("w") as out, self._err.open("w") as err:
            self.process = subprocess.Popen(
                command,
                env=environment,
                cwd=folder,
                stdout=out,
                stderr=err,
                stdin=stdin,
                start_new_session=True,
            )

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self.process.poll() is not None

    def wait_for(self, condition: Callable[[], Any], what: str) -> None:
        """Wait for a condition, while the application runs."""
        try:
            wait_until(lambda: self.ended or condition(), what)
        except AssertionError:
            self.kill()
            raise
        assert not self.ended, f"it ended before: {what}\n{self._err.read_text()[-3000:]}"

    def wait_for_line(self, line: str) -> None:
        """Wait until it has printed a line."""
        self.wait_for(lambda: line in self._out.read_text().splitlines(), f"it prints {line!r}")

    def end(self, timeout_s: float = 180) -> AppRun:
        """Wait until it has ended."""
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                f"it did not end within {timeout_s} s:\n{self._err.read_text()[-3000:]}"
            ) from None
        return AppRun(self.process.returncode, self._out.read_text(), self._err.read_text())

    def kill(self) -> None:
        """End it and all its children by force."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


_BASE_CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.showConsoleProgress": "false",
}


@contextmanager
def local_spark(name: str, warehouse: Path, conf: Mapping[str, str] | None = None) -> Iterator[Any]:
    """Give a Spark session in this process that says nothing.

    Args:
        name: of the application.
        warehouse: where its tables are.
        conf: more of Spark's keys.
    """
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName(name)
    own = {"spark.sql.warehouse.dir": str(warehouse), "spark.log.level": "OFF"}
    for key, value in {**_BASE_CONF, **own, **(conf or {})}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def stop_between_batches(query: Any) -> None:
    """Stop a query: within a batch, that would cancel its job, whose end comes after that of the query."""
    for _ in range(500):
        if not query.status["isTriggerActive"]:
            break
        query.awaitTermination(0.01)
    query.stop()


def cli(*arguments: str) -> list[str]:
    """Return the command line of ``spark-events``."""
    return [str(Path(sys.executable).with_name("spark-events")), *arguments]


# -- servers ------------------------------------------------------------------------------------------------


class Collector:
    """The OpenTelemetry Collector on ports of its own.

    Args:
        binary: the collector.
        folder: where it writes what it gets.
        config: its configuration; conf/ has the one that is shipped.
        environment: what the configuration takes from there.
    """

    def __init__(
        self,
        binary: Path,
        folder: Path,
        config: Path = REPO / "conf" / "otel-collector.yaml",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._binary = binary
        self.folder = folder
        self._config = config
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None
        self.grpc = f"http://127.0.0.1:{free_port()}"
        self.http = f"http://127.0.0.1:{free_port()}"
        self.prometheus = f"http://127.0.0.1:{free_port()}"

    def start(self) -> None:
        """Start it, unless it runs, and wait until it listens."""
        if self._process is not None:
            return
        environment = {
            **os.environ,
            "OTLP_GRPC": self.grpc.removeprefix("http://"),
            "OTLP_HTTP": self.http.removeprefix("http://"),
            "PROMETHEUS": self.prometheus.removeprefix("http://"),
            "OUT_DIR": str(self.folder),
            "QUEUE_DIR": str(self.folder / "queue"),
            "EVENTS_DIR": str(self.folder / "events"),
            **self._environment,
        }
        log = (self.folder / "collector.log").open("ab")
        self._process = subprocess.Popen(
            [str(self._binary), "--config", str(self._config)], env=environment, stdout=log, stderr=log
        )
        for endpoint in (self.grpc, self.http):
            host, port = endpoint.removeprefix("http://").split(":")
            wait_until(lambda h=host, p=port: _listens(h, int(p)), f"the collector listens at {endpoint}")

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            self._process.wait(20)
            self._process = None

    def kill(self) -> None:
        """End it by force, with no time to say anything."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(20)
        self._process = None

    def hang(self) -> None:
        """Let it answer nothing any longer, while its connections stay."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it answer again."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def ids(self) -> list[str]:
        """Return the ``event.id`` of all log records that it wrote, in order."""
        return [record["attributes"]["event.id"] for record in self.log_records()]

    def log_records(self) -> list[dict[str, Any]]:
        """Return all log records that it wrote, with their resource and scope."""
        return list(self._records("logs.jsonl", "resourceLogs", "scopeLogs", "logRecords"))

    def spans(self) -> list[dict[str, Any]]:
        """Return all spans that it wrote, with their resource and scope."""
        return list(self._records("traces.jsonl", "resourceSpans", "scopeSpans", "spans"))

    def metrics(self) -> list[dict[str, Any]]:
        """Return all metrics that it wrote, request by request, with their resource and scope."""
        return list(self._records("metrics.jsonl", "resourceMetrics", "scopeMetrics", "metrics"))

    def _records(self, name: str, resources: str, scopes: str, records: str) -> Iterable[dict[str, Any]]:
        path = self.folder / name
        if not path.exists():
            return
        # The last line may be half written.
        for line in path.read_text().split("\n")[:-1]:
            for resource in json.loads(line)[resources]:
                for scope in resource[scopes]:
                    for record in scope[records]:
                        yield {
                            **record,
                            "attributes": attributes_of(record),
                            "resource": attributes_of(resource["resource"]),
                            "scope": scope["scope"]["name"],
                        }


def attributes_of(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return OTLP-JSON's list of attributes as a mapping, whole numbers as such."""
    found = {}
    for pair in message.get("attributes", ()):
        ((kind, value),) = pair["value"].items()
        found[pair["key"]] = int(value) if kind == "intValue" else value
    return found


def _listens(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


class PrometheusServer:
    """A real Prometheus that scrapes one target each half second, and evaluates the shipped rules as often.

    Args:
        folder: for its files; what is in its ``data`` already is served.
        target_port: what it scrapes, on this machine.
        how: more of the scrape's configuration, in YAML's flow style.
    """

    def __init__(self, folder: Path, target_port: int, how: str = "") -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._target = f"127.0.0.1:{target_port}"
        self._how = how
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{free_port()}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        config = self._folder / "prometheus.yml"
        config.write_text(
            "global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}\n"
            f"rule_files: ['{REPO / 'conf' / 'prometheus' / 'rules'}/*.yml']\n"
            f"scrape_configs: [{{job_name: demo, static_configs: [{{targets: ['{self._target}']}}]{self._how}}}]\n"
        )
        log = (self._folder / "prometheus.log").open("ab")
        address = self.url.removeprefix("http://")
        self._process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={self._folder / 'data'}",
                "--storage.tsdb.retention.time=10y",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
        )
        wait_until(lambda: http_get(f"{self.url}/-/ready"), "Prometheus is ready")

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)
            self._process = None

    def query(self, expression: str, at: float | None = None) -> dict[tuple[tuple[str, str], ...], float]:
        """Return the value of each series of an instant query, by its labels without the scrape's own.

        Args:
            expression: PromQL.
            at: when, in s since the epoch; now where it is None.
        """
        parameters = {"query": expression} | ({} if at is None else {"time": f"{at:.3f}"})
        text = http_get(f"{self.url}/api/v1/query?{urllib.parse.urlencode(parameters)}")
        answer = json.loads(text)
        assert answer["status"] == "success", answer
        return {
            tuple(
                sorted((k, v) for k, v in row["metric"].items() if k not in ("__name__", "instance", "job"))
            ): float(row["value"][1])
            for row in answer["data"]["result"]
        }

    def value(self, expression: str) -> float | None:
        """Return the value of a query that yields one series; None where it yields none."""
        values = list(self.query(expression).values())
        assert len(values) <= 1, values
        return values[0] if values else None


class Pushgateway:
    """A Pushgateway on a port of its own.

    Args:
        folder: for its log.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{free_port()}"

    def start(self) -> None:
        """Start it, and wait until it listens."""
        address = self.url.removeprefix("http://")
        log = (self._folder / "pushgateway.log").open("ab")
        command = ["prometheus-pushgateway", f"--web.listen-address={address}", "--persistence.file="]
        self._process = subprocess.Popen(command, stdout=log, stderr=log)
        host, port = address.split(":")
        wait_until(lambda: _listens(host, int(port)), "the Pushgateway listens")

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)
            self._process = None

    def metrics(self) -> str:
        """Return what it serves."""
        return http_get(f"{self.url}/metrics")
