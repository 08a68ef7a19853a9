"""The documentation says what the code does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from docs import command_pages, why_sample
from spark_events.api import Failure, FailureContext, ReporterConfig
from spark_events.history.reading import facts
from spark_events.listeners.failures.enrichers import Enrichers
from spark_events.runtime import event_names
from spark_events.runtime.log_once import OnceLog
from spark_events.runtime.plugins import KINDS, installed, load_factory
from spark_events.sources.attaching.unknown_keys import OF_REPORTERS, OF_THE_FRAMEWORK
from tests.support.paths import REPO
from tests.support.raw_http import serving
from tests.support.waiting import wait_until

EVENTS = {name: text for name, text in vars(event_names).items() if name.isupper()}
BUILT_IN = [(kind, name) for kind in KINDS for name in installed(kind.entry_points)]


@pytest.mark.parametrize(("kind", "name"), BUILT_IN, ids=lambda value: getattr(value, "name", value))
def test_each_option_is_on_its_reporters_page(kind, name) -> None:  # type: ignore[no-untyped-def]
    factory = load_factory(kind, name, "key")
    folder = type(factory).__module__.split(".")[0].removeprefix("spark_events_")
    page, options = (
        (REPO / "docs" / "reporters" / f"{folder.replace('_', '-')}.md").read_text(),
        factory.options,
    )

    assert options is not None
    without = [option.name for option in options if f"`{option.name}`" not in page]
    assert without == [], f"describe each in docs/reporters/{folder.replace('_', '-')}.md"


def test_each_key_is_in_the_configuration_page() -> None:
    """So are the framework's keys, and the options that all reporters have."""
    page = (REPO / "docs" / "configuration.md").read_text()
    keys = [setting.option.name for setting in (*OF_THE_FRAMEWORK, *OF_REPORTERS)]

    assert len(keys) > 30
    assert [key for key in keys if f"| {key}" not in page] == [], "make settings"


def test_each_key_and_command_of_the_sql_runner_is_on_its_page() -> None:
    from spark_events.cli.sql.main import app
    from spark_events.sql_runner.manifest.manifest import json_schema

    page = (REPO / "docs" / "sql-runner.md").read_text()
    commands = [
        command.name or command.callback.__name__ for command in app.registered_commands if command.callback
    ]

    assert [key for key in json_schema()["properties"] if f"\n| {key} |" not in page] == []
    assert [command for command in commands if f"`{command}" not in page] == []


def test_each_event_is_in_the_events_page() -> None:
    """Each event has a section, and each attribute that the listeners set is there, or is of a span."""
    page, spans = ((REPO / "docs" / name).read_text() for name in ("events.md", "spans.md"))
    code = "\n".join(path.read_text() for path in (REPO / "spark_events" / "listeners").rglob("*.py"))
    attributes = set(re.findall(r'set_attribute\(\s*"([\w.]+)"', code))

    built = re.findall(r'Event\.builder\([A-Z_]+, (?:event_names\.(\w+)|"(\w+)")\)', code)

    named = {EVENTS.get(name, text) for name, text in built}
    assert named == {*EVENTS.values()} - {"RecordsDroppedEvent"}, (
        "each event has a name in runtime/event_names.py, and an Event.builder(CLASS_SCOPE, event_names.…)"
    )
    without = [name for name in EVENTS.values() if f"## {name}" not in page]
    assert without == [], "give each a section of its name, ## …, in docs/events.md"
    unknown = sorted(name for name in attributes if name not in page + spans)
    assert unknown == [], "describe each in docs/events.md, or in docs/spans.md if spans have it"


def test_each_event_is_beside_flinks() -> None:
    """The page that maps names has those that Flink lacks, too."""
    (section,) = re.findall(r"## Events\n(.*?)\n## ", (REPO / "docs" / "flink.md").read_text(), re.DOTALL)
    without = [name for name in EVENTS.values() if name not in section]

    assert without == [], (
        "add each to the table of events in docs/flink.md: (none) are those that Flink lacks"
    )


def test_each_fact_is_on_the_page_of_stores() -> None:
    """Other programs may read a store: each kind of fact and each column is listed."""
    page = (REPO / "docs" / "stores.md").read_text()
    listed = {name for names in re.findall(r"^\| ([a-z_, ]+) \|", page, re.M) for name in names.split(", ")}
    (of_kinds,) = re.findall(r"^\| fact \| (.*)", page, re.M)
    kinds = {*facts.KIND_OF_EVENT.values(), facts.EXECUTOR, facts.SEEN}

    assert facts.COLUMNS.keys() - listed == set(), "add each to the table of columns in docs/stores.md"
    assert kinds - {*re.findall(r"`(\w+)`", of_kinds)} == set(), (
        "add each to the row of fact in docs/stores.md"
    )


def test_the_sending_reporter_in_the_docs_works() -> None:
    """The example of docs/plugins.md: a destination that is away, and then is not, gets everything."""
    from http.server import BaseHTTPRequestHandler

    from spark_events.api import Event
    from spark_events.runtime.plugins import EVENTS
    from spark_events.runtime.registry import Registry
    from spark_events.runtime.setup import ReporterSetup

    codes, bodies = [503, 200], []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(codes[min(len(bodies), 2) - 1])
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with serving(Handler) as url:
        config = ReporterConfig("", {"url": url})
        registry = Registry([ReporterSetup(EVENTS, "hook", _example("WebhookReporterFactory")(), config)])
        registry.start()
        registry.root.add_event(Event.builder("scope", "MyEvent").set_id("id").set_body("body"))
        wait_until(lambda: registry.workers[0].stats.reported.count, "it is delivered")
        registry.close(5_000)

    assert bodies == [b"id MyEvent body"] * 2


def test_the_failure_enricher_in_the_docs_works() -> None:
    """The example of docs/plugins.md, asked as the framework asks."""
    enrichers = Enrichers([_example("TeamEnricher")()], OnceLog())
    failure = Failure("no heap", "java.lang.OutOfMemoryError")
    labels = enrichers.labels(failure, FailureContext("query", {"app_name": "payments-eu"}))
    enrichers.close()

    assert labels == {"team": "payments", "runbook": "oom"}


def _example(name: str) -> Any:
    """Return what a piece of Python in docs/plugins.md defines."""
    text = (REPO / "docs" / "plugins.md").read_text()
    found: dict[str, Any] = {}
    (code,) = [
        code for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if f"class {name}" in code
    ]
    exec(code, found)
    return found[name]


def test_each_fault_in_the_docs_has_its_test() -> None:
    """The table of docs/delivery.md names tests that there are."""
    rows = re.findall(r"\| (tests/\S+?)::(\w+) \|", (REPO / "docs" / "delivery.md").read_text())

    assert len(rows) > 25
    assert [row for row in rows if f"def {row[1]}(" not in (REPO / row[0]).read_text()] == []


def test_the_readme_begins_with_the_shipped_two_lines() -> None:
    """The two lines of the README are those of conf/spark-defaults.conf."""
    readme, shipped = (REPO / "README.md").read_text(), (REPO / "conf" / "spark-defaults.conf").read_text()
    lines = [line for line in shipped.splitlines() if line and not line.startswith("#")]

    assert len(lines) == 2
    assert "\n".join(lines) in readme


def test_the_readme_is_short() -> None:
    assert len((REPO / "README.md").read_text().split()) <= 650


def test_the_readme_has_the_figures_of_the_benchmarks() -> None:
    costs = (REPO / "README.md").read_text().split("## What it costs")[1].split("##")[0]
    figures = re.findall(r"\| (?:\+)?([\d.]+ ?\S+)[^|]*\| \d{4}-\d\d-\d\d[^|]*\|$", costs, re.M)
    page = (REPO / "docs" / "benchmarks.md").read_text()

    assert len(figures) == 5
    assert [figure for figure in figures if figure.removesuffix(" MB/s") not in page] == []


def test_the_page_of_commands_is_up_to_date() -> None:
    assert command_pages.PAGE.read_text() == command_pages.page(), "python -m docs.command_pages"


@pytest.mark.extended
def test_the_site_builds(tmp_path: Path) -> None:
    """Each page is reached from the navigation, and no link is broken."""
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=REPO, env=environment, capture_output=True, text=True, check=False)

    assert (done.stdout + done.stderr, done.returncode) == ("", 0)


def test_prometheus_takes_the_shipped_configuration() -> None:
    """The real promtool finds nothing wrong with conf/prometheus/prometheus.yml."""
    if shutil.which("promtool") is None:
        pytest.skip("no promtool on the PATH: apt-get install prometheus")
    command = ["promtool", "check", "config", str(REPO / "conf" / "prometheus" / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_code_runs_where_spark_events_is_gone(tmp_path: Path) -> None:
    """The stub that docs/leaving.md gives takes what ``task`` takes, and travels to executors."""
    page = (REPO / "docs" / "leaving.md").read_text()
    (stub,) = re.findall(r"```python\n(.*?)```", page, re.S)
    use = """
from pyspark import cloudpickle
import pickle

@task.measured
def parse(text):
    task.counter("rows", shop="berlin").inc()
    task.event("Odd", "a body", severity="warn")
    with task.span("lookup") as span:
        span.set_attribute("key", text)
    return int(text)

assert parse("7") == 7
assert pickle.loads(cloudpickle.dumps(parse))("8") == 8
"""
    blocker = "import sys\nsys.modules['spark_events'] = None\n"
    file = tmp_path / "job.py"
    file.write_text(blocker + stub + use)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_api_pages_have_every_name() -> None:
    """Of ``spark_events.api``, each on one of two pages."""
    from spark_events import api

    pages = [(REPO / "docs" / name).read_text() for name in ("api-reporters.md", "api-lineage.md")]
    listed = [
        name
        for page in pages
        for names in re.findall(r"members: \[(.*?)\]", page)
        for name in names.split(", ")
    ]
    assert sorted(listed) == sorted({*api.__all__} - {"option_types"})


def test_the_sample_of_why_is_what_the_command_prints() -> None:
    assert why_sample.PAGE.read_text() == why_sample.page(), "python -m docs.why_sample"
