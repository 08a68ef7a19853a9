"""Who may scrape, and who cannot hold up a scrape: TLS, passwords, tokens, silent clients."""

from __future__ import annotations

import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from spark_events_prometheus.factory import PrometheusReporterFactory
from spark_events_prometheus.reporter import PrometheusReporter

from spark_events.api import ConfigError, ReporterConfig
from tests.support.pki import Pki
from tests.support.prometheus import PrometheusServer
from tests.support.scraping import OTHER_HOSTS, OWN_HOSTS, basic, code_of, status_under, trusting
from tests.support.waiting import wait_until

PREFIX = "spark.metrics.reporter.prom."


@pytest.fixture
def serve() -> Iterator[Callable[..., PrometheusReporter]]:
    made: list[PrometheusReporter] = []

    def start(**options: str) -> PrometheusReporter:
        values = {
            "port": "0",
            "linger.timeout": "0",
            **{key.replace("__", ".").replace("_", "-"): value for key, value in options.items()},
        }
        reporter = PrometheusReporterFactory().create(ReporterConfig(PREFIX, values))
        made.append(reporter)
        reporter.open()
        return reporter

    yield start
    for reporter in made:
        reporter.close()


def port_of(reporter: PrometheusReporter) -> int:
    return int(reporter.destination.rpartition(":")[2].split("/")[0])


def tls_options(pki: Pki) -> dict[str, str]:
    return {"tls__certificate": str(pki.server), "tls__key": str(pki.server_key)}


@pytest.mark.parametrize("version", ["\xe9", "one", "1.0.0; escaping=\xff", ""])
def test_odd_wishes_of_a_scraper(serve: Callable[..., PrometheusReporter], version: str) -> None:
    """Whatever it would like to have, it gets an answer."""
    assert code_of(serve().destination, Accept=f"application/openmetrics-text;version={version}") == 200


def test_password_and_token(
    serve: Callable[..., PrometheusReporter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either of them will do, nothing else; health is nobody's secret."""
    monkeypatch.setenv("PASSWORD", "päss")
    url = serve(auth__username="me", auth__password="env:PASSWORD", auth__token="t0ken").destination

    assert code_of(url) == 401
    assert code_of(url, Authorization=basic("me:wrong")) == 401
    assert code_of(url, Authorization="Bearer wrong") == 401
    assert code_of(url, Authorization="t0ken") == 401
    assert code_of(url, Authorization=basic("me:päss")) == 200
    assert code_of(url, Authorization="Bearer t0ken") == 200
    assert code_of(url, Authorization="bearer t0ken") == 200
    assert code_of(url, Authorization="bearer T0KEN") == 401
    assert code_of(url.replace("/metrics", "/healthz")) == 200


def test_without_a_token_only_own_names_are_answered(serve: Callable[..., PrometheusReporter]) -> None:
    """Any name may have the loopback address, so a page of the web could ask under its own."""
    port = port_of(serve())
    assert [status_under((host,), port, "/metrics") for host in OWN_HOSTS] == [200] * len(OWN_HOSTS)
    assert [status_under((host,), port, "/metrics") for host in OTHER_HOSTS] == [421] * len(OTHER_HOSTS)
    assert status_under((), port, "/metrics") == 200
    assert status_under(("localhost", "other.example"), port, "/metrics") == 421


@pytest.mark.parametrize(
    ("options", "status"),
    [({"auth__token": "t0ken"}, 401), ({"bind__address": "0.0.0.0"}, 200), ({"bind__address": "::"}, 200)],
)
def test_a_server_for_others_has_any_name(
    serve: Callable[..., PrometheusReporter], options: dict[str, str], status: int
) -> None:
    assert status_under(("driver.example",), port_of(serve(**options)), "/metrics") == status


@pytest.mark.parametrize("address", ["localhost", "::ffff:127.0.0.1", "127.0.0.1"])
def test_however_the_loopback_address_is_written(
    serve: Callable[..., PrometheusReporter], address: str
) -> None:
    assert status_under(("driver.example",), port_of(serve(bind__address=address)), "/metrics") == 421


def test_with_tls_the_certificate_says_which_names(
    serve: Callable[..., PrometheusReporter], pki: Pki
) -> None:
    assert code_of(serve(**tls_options(pki)).destination, trusting(pki), Host="driver.example") == 200


def test_tls(serve: Callable[..., PrometheusReporter], pki: Pki) -> None:
    """Only https is answered, with the certificate that is configured."""
    url = serve(**tls_options(pki)).destination

    assert url.startswith("https://127.0.0.1:")
    assert code_of(url, trusting(pki)) == 200
    with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
        code_of(url, ssl.create_default_context(cafile=pki.others))
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        code_of(url.replace("https", "http"))


def test_mutual_tls(serve: Callable[..., PrometheusReporter], pki: Pki) -> None:
    """Who has no certificate of the configured authorities gets nothing."""
    url = serve(**tls_options(pki), tls__client__authorities=str(pki.authorities)).destination

    assert code_of(url, trusting(pki, client=True)) == 200
    with pytest.raises((urllib.error.URLError, OSError)):
        code_of(url, trusting(pki))


def test_a_renewed_certificate_is_served(
    serve: Callable[..., PrometheusReporter], pki: Pki, tmp_path: Path
) -> None:
    """Without a restart."""
    files = tmp_path / "cert.pem", tmp_path / "key.pem"

    def put(certificate: Path, key: Path) -> str:
        for target, source in zip(files, (certificate, key), strict=True):
            target.write_bytes(source.read_bytes())
        return ssl.PEM_cert_to_DER_cert(
            certificate.read_text().split("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----\n"
        ).hex()

    first = put(pki.server, pki.server_key)
    port = int(
        serve(tls__certificate=str(files[0]), tls__key=str(files[1])).destination.split(":")[2].split("/")[0]
    )

    def served() -> str:
        raw = socket.create_connection(("127.0.0.1", port), 5)
        with trusting(pki).wrap_socket(raw, server_hostname="127.0.0.1") as secured:
            return (secured.getpeercert(binary_form=True) or b"").hex()

    assert served() == first
    second = put(*pki.issue("renewed", "127.0.0.1"))
    assert served() == second


@pytest.mark.parametrize("secured", [False, True])
def test_silent_clients_hold_up_nobody(
    serve: Callable[..., PrometheusReporter], pki: Pki, secured: bool
) -> None:
    """Three hundred connections that say nothing, and a scrape is answered."""
    reporter = serve(**(tls_options(pki) if secured else {}))
    port = int(reporter.destination.split(":")[2].split("/")[0])
    silent = [socket.create_connection(("127.0.0.1", port), 5) for _ in range(300)]
    try:
        assert code_of(reporter.destination, trusting(pki) if secured else None) == 200
    finally:
        for client in silent:
            client.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tls.certificate": "/nowhere.pem", "tls.key": "/nowhere.pem"}, r"tls\.certificate: '/nowhere\.pem"),
        ({"tls.certificate": "/nowhere.pem"}, r"tls\.key: missing"),
        ({"tls.client.authorities": "/nowhere.pem"}, r"tls\.certificate: missing"),
        ({"auth.username": "me"}, r"auth\.password: missing; .*auth\.username has no effect"),
        ({"auth.password": "s3cr3t"}, r"auth\.username: missing"),
    ],
)
def test_half_a_configuration(options: dict[str, str], message: str) -> None:
    """What is missing is named; nothing is served with less protection than was asked for."""
    with pytest.raises(ConfigError, match=message) as caught:
        PrometheusReporterFactory().create(ReporterConfig(PREFIX, options))

    assert "s3cr3t" not in str(caught.value)


@pytest.mark.prometheus
def test_a_real_prometheus_scrapes_over_tls_with_a_password(
    serve: Callable[..., PrometheusReporter], pki: Pki, prometheus: Callable[..., PrometheusServer]
) -> None:
    """As its users would configure it."""
    options = {**tls_options(pki), "tls__client__authorities": str(pki.authorities)}
    reporter = serve(**options, auth__username="me", auth__password="s3cr3t")
    files = f"ca_file: {pki.authorities}, cert_file: {pki.client}, key_file: {pki.client_key}"
    how = f", scheme: https, basic_auth: {{username: me, password: s3cr3t}}, tls_config: {{{files}}}"
    server = prometheus(int(reporter.destination.split(":")[2].split("/")[0]), how)

    wait_until(lambda: server.value("up") == 1, "the scrape succeeds")
