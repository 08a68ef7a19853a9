"""The connection that the configuration and OpenTelemetry's environment variables ask for."""

from __future__ import annotations

import functools
import os
import ssl
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from spark_events.api import ConfigError, Option, ReporterConfig, Secret, is_http_url, url_without_secrets
from spark_events_otlp.options import (
    CERTIFICATE,
    CLIENT_CERTIFICATE,
    CLIENT_KEY,
    COMPRESSION,
    ENDPOINT,
    HEADERS,
    PROTOCOL,
    TIMEOUT,
)
from spark_events_otlp.signals import Signal
from spark_events_otlp.transport import Endpoint, OtlpTransport, TlsFiles, logger


def transport_from(config: ReporterConfig, signal: Signal) -> OtlpTransport:
    """Return the configured transport; nothing is connected yet.

    Raises:
        ConfigError: the endpoint is not a URL, a file of TLS cannot be read, or one of certificate and key is
            given without the other.
    """
    over_http = _is_over_http(config, signal)
    tls = _tls_files_from(config)
    endpoint = Endpoint(
        url=_url_from(config, signal, over_http),
        timeout_s=config.get(TIMEOUT) / 1000,
        gzip=config.get(COMPRESSION) == "gzip",
        headers=config.get(HEADERS) or _headers_of_environment(signal),
        tls=tls,
    )
    # Each with its own libraries, of which only one is wanted.
    if over_http:
        from spark_events_otlp.over_http import HttpTransport

        return HttpTransport(endpoint, signal)
    from spark_events_otlp.over_grpc import GrpcTransport

    return GrpcTransport(endpoint, signal)


def environment(name: str, signal: Signal) -> str | None:
    """Return OpenTelemetry's environment variable, that of the signal before that of all."""
    return next(filter(None, map(os.environ.get, _variables(name, signal))), None)


def _variables(name: str, signal: Signal) -> tuple[str, str]:
    """Return the names of the variable of the signal, and of that of all."""
    return f"OTEL_EXPORTER_OTLP_{signal.name}_{name}", f"OTEL_EXPORTER_OTLP_{name}"


def choice_of_environment(name: str, values: Sequence[str]) -> str:
    """Return the value of a variable of OpenTelemetry's, whatever its case; the first one if it is not set.

    So it is for another value, too, which is warned about: OpenTelemetry asks for this.

    Args:
        name: of the variable.
        values: that it may have, the default first.
    """
    text = os.environ.get(name, "").strip()
    if not text or text.lower() in values:
        return text.lower() or values[0]
    expected = f"{', '.join(values[:-1])} or {values[-1]}"
    logger.warning("%s: %r is ignored; expected %s; %s is used", name, text, expected, values[0])
    return values[0]


def _tls_files_from(config: ReporterConfig) -> TlsFiles:
    """Return the configured files, once each was read: else others might be trusted than were asked for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which nobody uses: it only reads the files
    for option in (CERTIFICATE, CLIENT_CERTIFICATE):
        if path := config.get(option):
            trust = functools.partial(context.load_verify_locations, path)
            _demand(config, option, trust, "a PEM file of certificates")
    config.both_or_none(CLIENT_CERTIFICATE, CLIENT_KEY)
    files = TlsFiles(config.get(CERTIFICATE), config.get(CLIENT_CERTIFICATE), config.get(CLIENT_KEY))
    if files.certificate and files.key:
        # An encrypted key would be asked for its password, on the terminal.
        show = functools.partial(context.load_cert_chain, files.certificate, files.key, password="")
        _demand(config, CLIENT_KEY, show, f"the key, without a password, of {files.certificate}")
    return files


def _demand(config: ReporterConfig, option: Option[Any], read: Callable[[], object], expected: str) -> None:
    try:
        read()
    except OSError as error:  # ssl's errors are such, too
        why = getattr(error, "reason", "") or error.strerror
        raise ConfigError.of_value(
            config.key(option.name), str(config.get(option)), f"{expected} ({why})"
        ) from error


def _is_over_http(config: ReporterConfig, signal: Signal) -> bool:
    """Return whether to send over HTTP; what the environment says of that goes with its endpoint."""
    if (configured := config.get(PROTOCOL)) is not None or config.get(ENDPOINT):
        return configured == "http"
    of_signal, of_all = _variables("PROTOCOL", signal)
    name = of_signal if os.environ.get(of_signal) else of_all
    return choice_of_environment(name, ("grpc", "http/protobuf")) == "http/protobuf"


def _url_from(config: ReporterConfig, signal: Signal, over_http: bool) -> str:
    default = "http://localhost:4318" if over_http else "http://localhost:4317"
    given = config.get(ENDPOINT) or environment("ENDPOINT", signal) or default
    # By OpenTelemetry's specification, an endpoint of one signal is the whole URL.
    of_signal, _ = _variables("ENDPOINT", signal)
    is_whole = not config.get(ENDPOINT) and bool(os.environ.get(of_signal))
    key = config.key(ENDPOINT.name)
    if not is_http_url(given):
        allowed = "a URL such as http://localhost:4317 or https://collector.example.org"
        raise ConfigError.of_value(key, url_without_secrets(given), allowed)
    url = urlsplit(given)
    if url.username or url.password:
        raise ConfigError(
            f"{key}: {url_without_secrets(given)!r} contains a user or a password; give them as a header: "
            f"{config.key(HEADERS.name)} authorization:env:NAME"
        )
    if over_http and not is_whole and not url.path.endswith(signal.path):
        return url._replace(path=url.path.rstrip("/") + signal.path).geturl()
    return given


def _headers_of_environment(signal: Signal) -> dict[str, Secret]:
    pairs = (pair.partition("=") for pair in (environment("HEADERS", signal) or "").split(","))
    return {unquote(key.strip()): Secret(unquote(value.strip())) for key, equals, value in pairs if equals}
