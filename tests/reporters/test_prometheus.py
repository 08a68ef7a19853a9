"""The Prometheus reporter: names, values, isolation, ports, and the real parser."""

from __future__ import annotations

import asyncio
import math
import re
import socket
import threading
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse
from spark_events_prometheus import naming
from spark_events_prometheus.factory import PrometheusReporterFactory
from spark_events_prometheus.options import BIND_ADDRESS
from spark_events_prometheus.reporter import PrometheusReporter, SeriesReporter

from spark_events.api import ConfigError, Counter, Gauge, Histogram, Meter, Metric, ReporterConfig
from spark_events.api.wrong_values import counts
from spark_events.runtime.registry import Registry
from spark_events.runtime.scope import ScopeGroup
from tests.support.waiting import free_port, http_get

PREFIX = "spark.metrics.reporter.prom."


def reporter_at(port: str) -> PrometheusReporter:
    reporter = PrometheusReporterFactory().create(
        ReporterConfig(PREFIX, {"port": port, "linger.timeout": "0"})
    )
    reporter.open()
    return reporter


def group(*logical: str, **variables: str) -> ScopeGroup:
    return ScopeGroup(Registry(()), ("spark", *logical), (), variables, {})


def scrape(reporter: PrometheusReporter, **headers: str) -> str:
    return http_get(reporter.destination, headers)


def test_names_units_and_types() -> None:
    """Snake case, base units, suffixes, HELP and TYPE."""
    reporter = reporter_at("0")
    query = group("query", app_name="a", query_name='q"\n\\')
    metrics: dict[str, Metric] = {
        "numRestarts": Gauge(lambda: 2, description="How often."),
        "statusAge": Gauge(lambda: 1500, "ms"),
        "stateSize": Gauge(lambda: 7, "By"),
        "rowsDropped": Counter("{row}", "Rows."),
        "checkpointDuration": Histogram([100, 1000], "ms"),
    }
    for name, metric in metrics.items():
        reporter.notify_of_added_metric(metric, name, query)
    metrics["rowsDropped"].inc(3)  # type: ignore[attr-defined]
    metrics["checkpointDuration"].update(250)  # type: ignore[attr-defined]
    text = scrape(reporter)
    samples = {(s.name, s.labels.get("le")): s.value for family in parse(text) for s in family.samples}
    reporter.close()

    assert "# HELP spark_query_num_restarts How often." in text
    assert "# TYPE spark_query_rows_dropped_total counter" in text
    assert samples == {
        ("spark_query_num_restarts", None): 2,
        ("spark_query_status_age_seconds", None): 1.5,
        ("spark_query_state_size_bytes", None): 7,
        ("spark_query_rows_dropped_total", None): 3,
        ("spark_query_checkpoint_duration_seconds_bucket", "0.1"): 0,
        ("spark_query_checkpoint_duration_seconds_bucket", "1.0"): 1,
        ("spark_query_checkpoint_duration_seconds_bucket", "+Inf"): 1,
        ("spark_query_checkpoint_duration_seconds_count", None): 1,
        ("spark_query_checkpoint_duration_seconds_sum", None): 0.25,
        ("spark_reporter_read_errors_total", None): 0,
    }


def test_openmetrics_on_request() -> None:
    """A client that asks for OpenMetrics gets it."""
    reporter = reporter_at("0")
    reporter.notify_of_added_metric(Counter(), "events", group(app_name="a"))
    reporter.notify_of_added_metric(Gauge(lambda: 1, "ms"), "statusAge", group(app_name="a"))
    text = scrape(reporter, Accept="application/openmetrics-text; version=1.0.0")
    reporter.close()

    assert text.endswith("# EOF\n")
    assert "# TYPE spark_events counter" in text
    assert "# UNIT spark_status_age_seconds seconds" in text
    assert {"spark_events", "spark_status_age_seconds"} <= {f.name for f in parse_openmetrics(text)}


ODD = st.text(max_size=12) | st.sampled_from(['a"b', "a\nb", "a\\b", "\ud800", ""])
METRICS: dict[str, Callable[[float], Metric]] = {
    "counter": lambda value: _set(Counter("ms"), int(abs(value)) if math.isfinite(value) else 1),
    "gauge": lambda value: Gauge(lambda: value, "ms"),
    "histogram": lambda value: _updated(
        Histogram([1, 10, math.inf]), abs(value) if math.isfinite(value) else 5
    ),
}


def _set(counter: Counter, value: int) -> Counter:
    counter.inc(value)
    return counter


def _updated(histogram: Histogram, value: float) -> Histogram:
    histogram.update(value)
    return histogram


@given(st.sampled_from(sorted(METRICS)), st.floats(), st.dictionaries(ODD, ODD, max_size=3), ODD)
def test_both_formats_say_what_prometheus_client_would(
    kind: str, value: float, variables: dict[str, str], described: str
) -> None:
    """For any labels, help and value, the samples are those that its parsers read, and its own writer writes."""
    metric = METRICS[kind](value)
    metric.description = described.encode("utf-8", "replace").decode()
    reporter = SeriesReporter()
    reporter.notify_of_added_metric(metric, "m", group(**variables))
    text, openmetrics = (reporter.render(form).decode() for form in (False, True))
    read = [
        [s for f in parser(t) for s in f.samples]
        for parser, t in ((parse, text), (parse_openmetrics, openmetrics))
    ]

    for samples in read:
        mine = [sample for sample in samples if "read_errors" not in sample.name]
        assert len(mine) == (5 if kind == "histogram" else 1)
        expected = naming.labels(variables)
        assert all({k: v for k, v in s.labels.items() if k != "le"} == expected for s in mine)
        if kind == "gauge":
            assert mine[0].value == pytest.approx(value * 0.001, nan_ok=True)


def test_a_gauge_that_raises_costs_itself_alone() -> None:
    """The others are served, and the error is counted."""
    reporter = reporter_at("0")
    readings = {"good": lambda: 1, "bad": lambda: 1 / 0, "absent": lambda: None, "cancelled": cancelled}
    for name, read in readings.items():
        reporter.notify_of_added_metric(Gauge(read), name, group())
    text = scrape(reporter)
    reporter.close()

    assert "spark_good 1.0" in text
    assert "spark_bad" not in text
    assert "spark_absent" not in text
    assert "spark_cancelled" not in text
    assert "spark_reporter_read_errors_total 2.0" in text


def cancelled() -> float:
    """Of a gauge that reads what somebody has cancelled; it is not an Exception."""
    raise asyncio.CancelledError


def test_a_lone_surrogate_costs_nothing() -> None:
    """One label that is not UTF-8 does not cost the scrape."""
    reporter = reporter_at("0")
    reporter.notify_of_added_metric(Gauge(lambda: 1), "odd", group(query_name="\ud800"))
    text = scrape(reporter)
    reporter.close()

    assert 'spark_odd{query_name="?"} 1.0' in text


def test_of_two_alike_the_first_stays() -> None:
    """Series that Prometheus could not tell apart are served once, and the first can go for itself."""
    reporter = reporter_at("0")
    first, second = Gauge(lambda: 1), Gauge(lambda: 2)
    reporter.notify_of_added_metric(first, "same", group(a="x"))
    reporter.notify_of_added_metric(second, "same", group(a="x"))
    assert 'spark_same{a="x"} 1.0' in scrape(reporter)
    reporter.notify_of_removed_metric(second, "same", group(a="x"))
    assert 'spark_same{a="x"} 1.0' in scrape(reporter)
    reporter.notify_of_removed_metric(first, "same", group(a="x"))
    assert "spark_same" not in scrape(reporter)
    reporter.close()


def test_a_range_falls_to_the_next_port() -> None:
    """A port that is taken costs nothing where a range is given."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        reporter = reporter_at(f"{port}-{port + 50}")
        assert not reporter.destination.endswith(f":{port}/metrics")
        assert scrape(reporter)
        reporter.close()
        with pytest.raises(ConfigError, match=rf"^{PREFIX}port: cannot listen on port {port} of 127"):
            reporter_at(str(port))
        with pytest.raises(ConfigError, match=f"cannot listen on port {port} of 127"):
            PrometheusReporterFactory().probe(ReporterConfig(PREFIX, {"port": str(port)}))


def test_closing_frees_the_port() -> None:
    """The next session of the same process can take the same port."""
    port = str(free_port())
    for _ in range(3):
        reporter = reporter_at(port)
        assert scrape(reporter)
        reporter.close()
        reporter.close()


def test_no_address_is_not_all_of_them() -> None:
    """A template may leave it empty."""
    config = ReporterConfig(PREFIX, {"bind.address": ""})
    with pytest.raises(ConfigError, match=r"bind.address: '' is not valid; expected an address"):
        config.get(BIND_ADDRESS)


@pytest.mark.parametrize("address", ["::1", "::", "localhost"])
def test_a_probe_listens_as_the_reporter_does(address: str) -> None:
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as taken:
        taken.bind((address, 0))
        taken.listen()
        port = taken.getsockname()[1]
        conf = ReporterConfig(PREFIX, {"bind.address": address, "port": f"{port}-{port + 50}"})
        said = PrometheusReporterFactory().probe(conf)
        assert re.fullmatch(rf"{port} is in use; metrics will be served on \d+ of {address}", said)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("no-such-host.invalid", "(No address|Name or service not known|Temporary failure).*"),
        ("192.0.2.7", "Cannot assign requested address"),
        ("2001:db8::7", "Cannot assign requested address"),
        ("ö..example", ".*(hostname|label).*"),
    ],
)
def test_an_address_that_is_not_this_machines(address: str, reason: str) -> None:
    """No other port would do: the first says so, and which option is wrong."""
    conf = ReporterConfig(PREFIX, {"bind.address": address})
    said = (
        rf"^{PREFIX}bind\.address: cannot listen on '{address}' \({reason}\); give an address of this machine"
    )
    with pytest.raises(ConfigError, match=said):
        PrometheusReporterFactory().probe(conf)
    with pytest.raises(ConfigError, match=said):
        PrometheusReporterFactory().create(conf).open()


def test_a_probe_says_which_port_it_will_be() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        conf = ReporterConfig(PREFIX, {"port": f"{port}-{min(port + 20, 65_535)}"})
        said = PrometheusReporterFactory().probe(conf)

    assert said.startswith(f"{port} is in use; metrics will be served on ")


def test_only_the_head_of_a_page() -> None:
    """As a monitor asks whether it is there; that is no scrape."""
    reporter = reporter_at("0")
    request = urllib.request.Request(reporter.destination, method="HEAD")
    with urllib.request.urlopen(request, timeout=5) as answer:
        assert (answer.status, answer.read()) == (200, b"")
        assert int(answer.headers["Content-Length"]) > 0
        assert answer.headers["Spark-Events-Answered-By"] == "driver"
    reporter.close()


def test_only_its_own_pages() -> None:
    """There is one page, and one that says that it lives."""
    reporter = reporter_at("0")
    base = reporter.destination.removesuffix("/metrics")
    assert http_get(f"{base}/healthz") == "ok\n"
    assert http_get(f"{base}/secrets") == ""
    reporter.close()


def test_silent_clients_hold_up_nobody() -> None:
    """A hundred connections that say nothing do not hold up a scrape."""
    reporter = reporter_at("0")
    host, port = reporter.destination.removeprefix("http://").removesuffix("/metrics").split(":")
    silent = [socket.create_connection((host, int(port))) for _ in range(100)]
    assert scrape(reporter)
    for connection in silent:
        connection.close()
    reporter.close()


def test_a_meter_is_a_counter() -> None:
    """Prometheus takes the rate itself."""
    reporter = reporter_at("0")
    meter = Meter(unit="{row}", description="Rows.")
    reporter.notify_of_added_metric(meter, "rowsRead", group("query", query_name="q"))
    meter.mark(3)
    text = scrape(reporter)
    reporter.close()

    assert "# TYPE spark_query_rows_read_total counter" in text
    assert 'spark_query_rows_read_total{query_name="q"} 3.0' in text


def test_a_name_has_one_type(caplog: pytest.LogCaptureFixture) -> None:
    """A gauge with a counter's name, its ``_total`` included, is not served, warned of, and counted."""
    reporter, before = SeriesReporter(), counts()["series"]
    reporter.notify_of_added_metric(Counter(), "rows", group())
    reporter.notify_of_added_metric(Gauge(lambda: 1), "rowsTotal", group())
    text = reporter.render().decode()

    assert text.count("spark_rows_total") == 3
    assert "spark_rows is a counter, and cannot also be a gauge" in caplog.text
    assert counts()["series"] - before == 1


def test_names_that_prometheus_cannot_tell_apart(caplog: pytest.LogCaptureFixture) -> None:
    """The first stays; each of the others is warned of, and counted."""
    reporter, before = SeriesReporter(), counts()["series"]
    for name in ("a.b", "a_b", "a b"):
        counter = Counter()
        counter.inc()
        reporter.notify_of_added_metric(counter, name, group())

    assert "spark_a_b_total 1.0" in reporter.render().decode()
    assert caplog.text.count("a series is not served: another one is spark_a_b{}, too") == 2
    assert counts()["series"] - before == 2


@pytest.mark.parametrize("part", ["Bucket", "Count", "Sum", "Created"])
@pytest.mark.parametrize("histogram_first", [True, False])
def test_nothing_has_the_name_of_a_part_of_a_histogram(
    part: str, histogram_first: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Parsers, that of the Pushgateway among them, refuse the whole text for that; so the first stays."""
    reporter = SeriesReporter()
    both: list[tuple[Metric, str]] = [(Histogram([1.0]), "rows"), (Gauge(lambda: 1), f"rows{part}")]
    for metric, name in both if histogram_first else both[::-1]:
        reporter.notify_of_added_metric(metric, name, group())
    families = [family.name for family in parse(reporter.render().decode())]
    assert list(parse_openmetrics(reporter.render(True).decode()))

    served = "spark_rows" if histogram_first else f"spark_rows_{part.lower()}"
    assert [name for name in families if "rows" in name] == [served]
    assert f"spark_rows_{part.lower()} is a part of the histogram spark_rows" in caplog.text
    reporter.notify_of_removed_metric(*both[0], group())
    reporter.notify_of_removed_metric(*both[1], group())
    assert "spark_rows" not in reporter.render().decode()


def test_a_counter_may_have_the_name_of_a_part_of_a_histogram() -> None:
    """Its samples end with ``_total``; in OpenMetrics, whose name of it does not, it is of unknown type."""
    reporter = SeriesReporter()
    reporter.notify_of_added_metric(Histogram([1.0]), "rows", group())
    reporter.notify_of_added_metric(Counter(), "rowsCount", group())
    for text in (parse(reporter.render().decode()), parse_openmetrics(reporter.render(True).decode())):
        names = {sample.name for family in text for sample in family.samples}
        assert {"spark_rows_count", "spark_rows_count_total"} <= names


@pytest.mark.parametrize("other", [Counter(), Gauge(lambda: 1)])
def test_a_counter_beside_what_openmetrics_calls_its_creation(other: Metric) -> None:
    """Both are served: in OpenMetrics, one of them is of unknown type, so that its parsers refuse nothing."""
    reporter = SeriesReporter()
    for metric, name in ((Counter(), "rows"), (other, "rowsCreated"), (Histogram([1.0]), "files")):
        reporter.notify_of_added_metric(metric, name, group())
    reporter.notify_of_added_metric(Counter(), "filesCreated", group())
    for text in (parse(reporter.render().decode()), parse_openmetrics(reporter.render(True).decode())):
        names = {sample.name for family in text for sample in family.samples}
        created = "spark_rows_created" if isinstance(other, Gauge) else "spark_rows_created_total"
        assert {"spark_rows_total", created, "spark_files_count", "spark_files_created_total"} <= names


def test_without_more_files_it_does_not_ask_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that cannot be accepted is there again at once; that must not cost the driver a core."""
    reporter = reporter_at("0")
    server, pauses = reporter._server, []
    assert server is not None
    refused, paused = [OSError(24, "Too many open files")] * 3, threading.Event()

    def accept() -> Any:
        if refused:
            raise refused.pop()
        return usual()

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            paused.set()

    usual = server.socket.accept
    monkeypatch.setattr("spark_events.api.toolkit.page_server.time.sleep", pause)
    server.socket = _Socket(server.socket, accept)  # type: ignore[assignment]
    assert scrape(reporter)
    assert paused.is_set()
    assert all(pauses)
    reporter.close()


class _Socket:
    """A socket with another ``accept``."""

    def __init__(self, of: socket.socket, accept: Callable[[], Any]) -> None:
        self._of = of
        self.accept = accept

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)


def test_without_more_threads_a_connection_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that no thread serves do not take the room of those that one does."""
    reporter = reporter_at("0")
    server = reporter._server
    assert server is not None

    def start(_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr("socketserver.threading.Thread.start", start)
        assert http_get(reporter.destination) == ""
    assert server._waiting == {}
    assert scrape(reporter)
    reporter.close()


def test_series_come_while_it_is_scraped() -> None:
    """None of them is forgotten, whatever a scrape was doing when it came."""
    reporter = SeriesReporter()
    done = threading.Event()
    broken: list[BaseException] = []

    def scrape_on() -> None:
        try:
            while not done.is_set():
                reporter.render()
        except BaseException as error:
            broken.append(error)

    scrapers = [threading.Thread(target=scrape_on) for _ in range(4)]
    for scraper in scrapers:
        scraper.start()
    kinds: list[Callable[[], Metric]] = [lambda: Gauge(lambda: 1), Counter, lambda: Histogram([1])]
    for number in range(1_500):
        name = f"m{number % 3}"
        reporter.notify_of_added_metric(kinds[number % 3](), name, group(query_name=str(number)))
    done.set()
    for scraper in scrapers:
        scraper.join()

    assert not broken
    assert reporter.render().decode().count("query_name=") == 500 + 500 + 500 * 4


def test_a_series_that_comes_while_lines_are_prepared() -> None:
    """The next scrape has it, though the one that was under way could not."""
    reporter = SeriesReporter()
    reporter.notify_of_added_metric(Counter(), "rows", group(query_name="first"))
    (family,) = reporter._families.values()
    prefix = family._prefix

    def prefix_slowly(labels: Any, metric: Metric) -> Any:
        family._prefix = prefix  # type: ignore[method-assign]
        reporter.notify_of_added_metric(Counter(), "rows", group(query_name="second"))
        return prefix(labels, metric)

    family._prefix = prefix_slowly  # type: ignore[method-assign]
    assert reporter.render().count(b"query_name") == 1
    assert reporter.render().count(b"query_name") == 2


def test_what_is_no_finite_number() -> None:
    """NaN and the infinities are written as Prometheus writes them, also inside a label's neighbourhood."""
    reporter = SeriesReporter()
    for name, value in (("nan", float("nan")), ("inf", float("inf")), ("minus", -float("inf"))):
        reporter.notify_of_added_metric(Gauge(lambda value=value: value), "odd", group(label=f"{name} inf"))
    lines = [line for line in reporter.render().decode().splitlines() if line.startswith("spark_odd")]

    assert lines == [
        'spark_odd{label="nan inf"} NaN',
        'spark_odd{label="inf inf"} +Inf',
        'spark_odd{label="minus inf"} -Inf',
    ]


def test_variables_that_have_one_label(caplog: pytest.LogCaptureFixture) -> None:
    """It has the values of all of them, in the order of their names, as OpenTelemetry says; the log says so once."""
    naming._say_joined.cache_clear()
    reporter = SeriesReporter()
    variables = {
        "ü": "Köln",
        "é": "Paris",
        "a.b": "2",
        "a-b": "1",
        "a_b": "",
        "le": "x",
        "le_": "y",
        "ok": "z",
    }
    for name in ("rows", "bytes"):
        reporter.notify_of_added_metric(Counter(), name, group(**variables))
    reporter.notify_of_removed_metric(Counter(), "rows", group(**variables))
    other = {**variables, "ü": "Bonn"}
    reporter.notify_of_added_metric(Counter(), "rows", group(**other))
    text = reporter.render().decode()

    for city in ("Köln", "Bonn"):
        assert f'spark_rows_total{{_="Paris;{city}",a_b="1;2",le_="x;y",ok="z"}} 0.0' in text
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "the variables 'a-b', 'a.b' are one label of Prometheus: a_b has their values, joined with ';'",
        "the variables 'le', 'le_' are one label of Prometheus: le_ has their values, joined with ';'",
        "the variables 'é', 'ü' are one label of Prometheus: _ has their values, joined with ';'",
    ]


def test_variables_with_the_names_of_prometheus_own_labels() -> None:
    """``le`` is the bound of a bucket, and two underscores are for Prometheus itself."""
    reporter = SeriesReporter()
    reporter.notify_of_added_metric(Histogram([1]), "took", group(le="mine", __name__="odd"))
    text = reporter.render().decode()

    assert 'spark_took_bucket{_name__="odd",le_="mine",le="1.0"} 0.0' in text
