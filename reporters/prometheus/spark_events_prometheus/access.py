"""The access to the metrics: TLS, and a password or a token."""

from __future__ import annotations

from spark_events.api import ConfigError, ReporterConfig, ServerAuthentication, ServerTls
from spark_events_prometheus.options import (
    AUTH_PASSWORD,
    AUTH_TOKEN,
    AUTH_USERNAME,
    TLS_CERTIFICATE,
    TLS_CLIENT_AUTHORITIES,
    TLS_KEY,
)


def authentication_from(config: ReporterConfig) -> ServerAuthentication:
    """Return the credentials that a scrape needs.

    Raises:
        ConfigError: one of user and password is given without the other.
    """
    config.both_or_none(AUTH_USERNAME, AUTH_PASSWORD)
    username, password = config.get(AUTH_USERNAME), config.get(AUTH_PASSWORD)
    passwords = {username: password} if username is not None and password is not None else {}
    return ServerAuthentication("metrics", config.get(AUTH_TOKEN), passwords)


def tls_from(config: ReporterConfig) -> ServerTls | None:
    """Return the server's TLS; None where it is off.

    Raises:
        ConfigError: a file is missing, or cannot be used.
    """
    certificate, key = config.get(TLS_CERTIFICATE), config.get(TLS_KEY)
    client_authorities = config.get(TLS_CLIENT_AUTHORITIES)
    if certificate is None and key is None and client_authorities is None:
        return None
    if certificate is None or key is None:
        missing = TLS_CERTIFICATE if certificate is None else TLS_KEY
        raise ConfigError(f"{config.key(missing.name)}: missing; TLS needs a certificate and its key")
    try:
        return ServerTls(certificate, key, client_authorities)
    except OSError as error:
        names = ", ".join(str(path) for path in (certificate, key, client_authorities) if path)
        raise ConfigError.of_value(
            config.key(TLS_CERTIFICATE.name), names, f"PEM files of a certificate and its key ({error})"
        ) from error
