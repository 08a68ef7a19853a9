"""OTLP over TLS to a real collector: whom it trusts, who it is, and what happens when that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from spark_events_otlp.factory import OtlpEventReporterFactory

from spark_events.api import ConfigError, Event, RetryLater
from tests.support.collector import Collector
from tests.support.otlp_reporters import config, outbox_of, send_one
from tests.support.pki import Pki
from tests.support.waiting import wait_until

pytestmark = pytest.mark.collector
PROTOCOLS = pytest.mark.parametrize("protocol", ["grpc", "http"])


@pytest.fixture
def secured(own_collector: Callable[..., Collector], pki: Pki, tmp_path: Path) -> Iterator[Collector]:
    """A collector that asks for a client's certificate."""
    tls = f"tls: {{cert_file: {pki.server}, key_file: {pki.server_key}, client_ca_file: {pki.authorities}}}"
    text = Path(__file__).parents[2].joinpath("conf", "otel-collector.yaml").read_text()
    for variable in ("${env:OTLP_GRPC:-127.0.0.1:4317}", "${env:OTLP_HTTP:-127.0.0.1:4318}"):
        text = text.replace(
            f"        endpoint: {variable}\n", f"        endpoint: {variable}\n        {tls}\n"
        )
    path = tmp_path / "tls.yaml"
    path.write_text(text)
    collector = own_collector(config=path)
    collector.start()
    yield collector
    collector.stop()


def https(collector: Collector, protocol: str) -> str:
    return str(getattr(collector, protocol)).replace("http:", "https:")


def files(pki: Pki) -> dict[str, str]:
    return {
        "exporter__certificate": str(pki.authorities),
        "exporter__client__certificate": str(pki.client),
        "exporter__client__key": str(pki.client_key),
    }


@PROTOCOLS
def test_mutual_tls(secured: Collector, pki: Pki, protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all three files an event arrives, whatever the environment says of authorities."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(pki.others))
    send_one(config(https(secured, protocol), protocol, **files(pki)))

    wait_until(lambda: secured.ids() == ["id"], "the collector has it")


@PROTOCOLS
@pytest.mark.parametrize("wrong", ["authorities", "nobody"])
def test_wrong_certificates(secured: Collector, pki: Pki, protocol: str, wrong: str) -> None:
    """A server that nobody vouches for, and a client without a certificate: kept, and said why."""
    options = files(pki)
    if wrong == "authorities":
        options["exporter__certificate"] = str(pki.others)
    else:
        del options["exporter__client__certificate"], options["exporter__client__key"]
    with pytest.raises(RetryLater) as caught:
        send_one(config(https(secured, protocol), protocol, **options))

    assert caught.value.tries is None
    if wrong == "authorities":
        assert "CERTIFICATE_VERIFY_FAILED" in str(caught.value)


@PROTOCOLS
def test_renewed_certificates_are_read(secured: Collector, pki: Pki, protocol: str, tmp_path: Path) -> None:
    """Files that are replaced count from the next request on, without a restart."""
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(pki.others.read_bytes())
    options = {**files(pki), "exporter__certificate": str(trusted)}
    reporter = OtlpEventReporterFactory().create(config(https(secured, protocol), protocol, **options))
    records = outbox_of(reporter)
    reporter.notify_of_added_event(Event("renewed", "MyEvent", "scope", 1))
    with pytest.raises(RetryLater):
        reporter.send(records, reporter.context)
    trusted.write_bytes(pki.authorities.read_bytes())
    reporter.send(records, reporter.context)
    trusted.unlink()
    with pytest.raises(RetryLater, match=r"trusted\.pem"):
        reporter.send(records, reporter.context)
    reporter.close()

    wait_until(lambda: secured.ids() == ["renewed"], "the collector has it")


@PROTOCOLS
@pytest.mark.parametrize("missing", ["exporter.client.certificate", "exporter.client.key"])
def test_one_without_the_other(pki: Pki, protocol: str, missing: str) -> None:
    """A certificate without its key, or a key alone, is an error that names what is missing."""
    options = {
        key: value for key, value in files(pki).items() if key.replace("__", ".").replace("_", "-") != missing
    }
    with pytest.raises(ConfigError, match=f"{missing}: missing"):
        OtlpEventReporterFactory().create(config("https://x", protocol, **options))


def test_a_collector_that_wants_tls_has_refused_nothing(secured: Collector) -> None:
    """It answers 400, as to what it never takes; but it has not seen the request."""
    plain = secured.http.replace("https://", "http://")
    with pytest.raises(RetryLater, match=r"it expects TLS \(see exporter\.endpoint: https://") as caught:
        send_one(config(plain, "http"))
    assert caught.value.tries is None


@pytest.mark.parametrize("protocol", ["grpc", "http"])
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("junk", r"exporter\.certificate: '.*junk\.pem' is not valid; expected a PEM file of certificates"),
        ("empty", r"exporter\.certificate: '.*empty\.pem' is not valid; expected a PEM file of certificates"),
        ("key", r"exporter\.client\.key: '.*server-key\.pem' is not valid; expected the key"),
        ("client", r"client\.certificate: '.*junk\.pem' is not valid; expected a PEM file of certificates"),
    ],
)
def test_files_that_are_none_of_tls(pki: Pki, tmp_path: Path, protocol: str, wrong: str, said: str) -> None:
    """The file is named before anybody is asked: it is not the destination's fault."""
    (tmp_path / "junk.pem").write_text("no certificate\n")
    (tmp_path / "empty.pem").touch()
    options = files(pki)
    if wrong in ("junk", "empty"):
        options["exporter__certificate"] = str(tmp_path / f"{wrong}.pem")
    elif wrong == "key":
        options["exporter__client__key"] = str(pki.server_key)
    else:
        options["exporter__client__certificate"] = str(tmp_path / "junk.pem")
    with pytest.raises(ConfigError, match=said):
        OtlpEventReporterFactory().create(config("https://x", protocol, **options))
