"""The reporter that pushes, with a real Pushgateway."""

from __future__ import annotations

from urllib.request import Request

import pytest
from spark_events_prometheus import pushgateway as pushgateway_module
from spark_events_prometheus.factory import PushgatewayReporterFactory
from spark_events_prometheus.pushgateway import PushgatewayReporter

from spark_events.api import ApplicationInfo, ConfigError, Counter, Gauge, Refused, ReporterConfig, RetryLater
from spark_events.runtime.registry import Registry
from spark_events.runtime.scope import ScopeGroup
from spark_events.runtime.setup import read_all_setups
from tests.support.prometheus import Pushgateway
from tests.support.raw_http import dripping, raw_http
from tests.support.scraping import basic
from tests.support.waiting import free_port, wait_until

PREFIX = "spark.metrics.reporter.push."
pytestmark = pytest.mark.prometheus


def reporter(url: str, **options: str) -> PushgatewayReporter:
    config = ReporterConfig(PREFIX, {"hostUrl": url, **options}, ApplicationInfo("nightly", "app-1"))
    return PushgatewayReporterFactory().create(config)


def group(**variables: str) -> ScopeGroup:
    return ScopeGroup(Registry(()), ("spark", "application"), (), variables, {})


def test_a_job_that_is_deleted_at_the_end(pushgateway: Pushgateway) -> None:
    """Each report takes the place of the one before; with ``deleteOnShutdown``, the end leaves nothing behind."""
    pushing = reporter(pushgateway.url, groupingKey="team=payments;env=prod", deleteOnShutdown="true")
    counter, gone = Counter(description="Rows."), Gauge(lambda: 1)
    pushing.notify_of_added_metric(counter, "rows", group(app_name="nightly"))
    pushing.notify_of_added_metric(gone, "gone", group())
    counter.inc(5)
    pushing.report()
    labels = '{app_name="nightly",env="prod",instance="",job="nightly",team="payments"}'
    assert f"spark_application_rows_total{labels} 5" in pushgateway.metrics()
    assert "spark_application_gone" in pushgateway.metrics()
    counter.inc()
    pushing.notify_of_removed_metric(gone, "gone", group())
    pushing.report()
    assert f"spark_application_rows_total{labels} 6" in pushgateway.metrics()
    assert "spark_application_gone" not in pushgateway.metrics()
    pushing.close()
    pushing.close()

    # A Pushgateway answers a DELETE before it has done it.
    wait_until(lambda: "spark_application" not in pushgateway.metrics(), "the group is deleted")


def test_labels_that_the_group_has(pushgateway: Pushgateway) -> None:
    """The Pushgateway would give all of these series the group's values, and then refuse all as the same."""
    pushing = reporter(pushgateway.url, jobName="n", groupingKey="team=payments")
    for job in ("a", "b"):
        pushing.notify_of_added_metric(Counter(), "files", group(job=job, team=job, exported_team="c"))
    gone = Counter()
    pushing.notify_of_added_metric(gone, "files", group(job="gone"))
    pushing.notify_of_removed_metric(gone, "files", group(job="gone"))
    pushing.report()

    of_group = 'instance="",job="n",team="payments"'
    for job in ("a", "b"):
        own = f'exported_exported_team="{job}",exported_job="{job}",exported_team="c"'
        assert f"spark_application_files_total{{{own},{of_group}}} 0" in pushgateway.metrics()
    assert "gone" not in pushgateway.metrics()


def test_a_label_that_the_group_has_under_its_other_name_too(pushgateway: Pushgateway) -> None:
    pushing = reporter(pushgateway.url, jobName="n", groupingKey="exported_job=x")
    for job in ("a", "b"):
        pushing.notify_of_added_metric(Counter(), "files", group(job=job))
    pushing.report()

    for job in ("a", "b"):
        own = f'exported_exported_job="{job}",exported_job="x"'
        assert f'spark_application_files_total{{{own},instance="",job="n"}} 0' in pushgateway.metrics()


def test_the_group_stays(pushgateway: Pushgateway) -> None:
    """So Prometheus sees how the application ended; a suffix tells one run from another."""
    names = set()
    for _ in range(2):
        pushing = reporter(pushgateway.url, jobName="n", randomJobNameSuffix="true")
        pushing.notify_of_added_metric(Counter(), "rows", group())
        pushing.report()
        pushing.close()
        names.add(pushing.destination)

    assert len(names) == 2
    assert pushgateway.metrics().count("spark_application_rows_total{") == 2


def test_the_end_of_a_process_that_was_killed(pushgateway: Pushgateway) -> None:
    """The one that tells it has the statuses alone: what the first has pushed stays, in its group."""
    first = reporter(pushgateway.url, jobName="n")
    counter = Counter()
    first.notify_of_added_metric(counter, "rows", group())
    first.notify_of_added_metric(Gauge(lambda: 1), "status", group(status="RUNNING"))
    counter.inc(7)
    first.report()
    values = {"hostUrl": pushgateway.url, "jobName": "n"}
    for more in ({}, {"randomJobNameSuffix": "true"}):
        last = PushgatewayReporter(ReporterConfig(PREFIX, values | more, tells_end=True))
        last.notify_of_added_metric(Gauge(lambda: 1), "status", group(status="FAILED"))
        last.report()
        last.close()
    lines = [line for line in pushgateway.metrics().splitlines() if line.startswith("spark_app")]
    assert lines == [
        'spark_application_rows_total{instance="",job="n"} 7',
        'spark_application_status{instance="",job="n",status="FAILED"} 1',
    ]


def test_by_way_of_the_registry(pushgateway: Pushgateway) -> None:
    """It is found by its name, reports each interval, and once more at the end."""
    conf = {
        PREFIX + "factory.class": "prometheus_pushgateway",
        PREFIX + "hostUrl": pushgateway.url,
        PREFIX + "interval": "50ms",
    }
    setups, errors = read_all_setups(conf, ApplicationInfo("nightly", "app-1"))
    assert not errors
    registry = Registry(setups)
    registry.start()
    counter = registry.root.register("rows", Counter())
    wait_until(lambda: "spark_rows_total" in pushgateway.metrics(), "it is pushed")
    counter.inc(41)
    registry.close(5_000)

    assert 'spark_rows_total{instance="",job="nightly"} 41' in pushgateway.metrics()


def test_nobody_there_is_no_error_of_the_job() -> None:
    """A Pushgateway that is away is asked again at the next interval."""
    pushing = reporter(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(RetryLater, match="refused"):
        pushing.report()
    pushing.close()  # nothing was pushed, so nothing is deleted


def test_a_probe_says_whom_it_has_asked() -> None:
    """It has the same words for what is wrong as a push."""
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(RetryLater, match=f"^{url}: connection refused; is a Pushgateway running there.$"):
        reporter(url).probe()
    answer = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 5\r\n\r\nlater"
    with raw_http([answer]) as (url, _), pytest.raises(RetryLater, match=f"^{url} answered 503: later$"):
        reporter(url).probe()


def test_a_probe_has_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Pushgateway that wants one wants it of each request."""
    asked: list[Request] = []
    monkeypatch.setattr(pushgateway_module, "_open", lambda request, _: asked.append(request))
    reporter("http://h", username="me", password="s3cret").probe()
    assert [request.get_header("Authorization") for request in asked] == [basic("me:s3cret")]


def test_what_it_does_not_take_is_refused(pushgateway: Pushgateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is in the error."""
    pushing = reporter(pushgateway.url)
    monkeypatch.setattr(pushing, "render", lambda: b"no metric {\n")
    with pytest.raises(Refused, match="answered 400: text format parsing error"):
        pushing.report()


@pytest.mark.parametrize("what", ["head", "header line", "100 Continue"])
def test_an_answer_that_drips(what: str) -> None:
    """The timeout is that of the whole answer."""
    with dripping(what) as url:
        pushing = reporter(url, timeout="300ms")
        with pytest.raises(RetryLater, match=r"the whole answer was not there within 0\.3 s"):
            pushing.report()


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 200,
        b"HTTP/1.1 302 Found\r\nLocation: http://[::1\r\nContent-Length: 0\r\n\r\n",
    ],
    ids=["ssh", "headers", "an odd place"],
)
def test_something_that_is_no_pushgateway(answer: bytes) -> None:
    with raw_http([answer]) as (url, _), pytest.raises(RetryLater):
        reporter(url).report()


def test_a_probe_is_not_led_away_from_http() -> None:
    """``check --connect`` asks by GET, which follows redirects: not to FTP, which has no such timeout."""
    answer = b"HTTP/1.1 302 Found\r\nLocation: ftp://127.0.0.1:1/ready\r\nContent-Length: 0\r\n\r\n"
    with raw_http([answer]) as (url, _), pytest.raises(RetryLater, match="unknown url type: ftp"):
        reporter(url).probe()


def test_an_error_whose_reason_does_not_come() -> None:
    pieces = [b"HTTP/1.1 503 No\r\nContent-Length: 60\r\n\r\n", *[b"x"] * 60]
    with (
        raw_http(pieces, 0.02) as (url, _),
        pytest.raises(RetryLater, match=r"answered 503: \(the whole answer"),
    ):
        reporter(url, timeout="300ms").report()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hostUrl": "localhost:9091"}, "hostUrl: 'localhost:9091' is not valid; expected a URL"),
        ({"hostUrl": "http://[h"}, r"hostUrl: 'http://\[h' is not valid"),
        ({"hostUrl": "http://h:99999"}, "hostUrl: 'http://h:99999' is not valid; expected a URL"),
        ({"hostUrl": "http://h:0"}, "hostUrl: 'http://h:0' is not valid; expected a URL"),
        ({"hostUrl": "http://u:secret@h"}, r"hostUrl: 'http://\*{6}@h' is not valid"),
        ({"hostUrl": "http://secret@h"}, r"hostUrl: 'http://\*{6}@h' is not valid"),
        ({"hostUrl": "http://h/?token=secret"}, r"hostUrl: 'http://h/\?\*{6}' is not valid"),
        ({"username": "u"}, "password: missing; .*username has no effect without it"),
        (
            {"groupingKey": "a b=x"},
            "groupingKey: 'a b' is not valid; expected labels such as team=payments",
        ),
        ({"groupingKey": "team"}, "groupingKey: 'team' is not valid; expected a map such as key=value"),
    ],
)
def test_wrong_options(options: dict[str, str], message: str) -> None:
    """Each names its key and what is allowed."""
    with pytest.raises(ConfigError, match=message):
        reporter(
            **{"url": "http://h", **options} if "hostUrl" not in options else {"url": options["hostUrl"]}
        )
