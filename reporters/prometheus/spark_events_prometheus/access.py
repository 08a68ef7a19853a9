"""The access to the metrics: TLS, and a password or a token."""

from __future__ import annotations

import base64
import hmac

from spark_events.api import ConfigError, ReporterConfig, ServerTls
from spark_events_prometheus.options import (
    AUTH_PASSWORD,
    AUTH_TOKEN,
    AUTH_USERNAME,
    TLS_CERTIFICATE,
    TLS_CLIENT_AUTHORITIES,
    TLS_KEY,
)


class Authentication:
    """The credentials that a request needs; with neither password nor token, none.

    Raises:
        ConfigError: one of user and password is given without the other.
    """

    def __init__(self, config: ReporterConfig) -> None:
        config.both_or_none(AUTH_USERNAME, AUTH_PASSWORD)
        self._username, self._password = config.get(AUTH_USERNAME), config.get(AUTH_PASSWORD)
        self._token = config.get(AUTH_TOKEN)

    @property
    def challenge(self) -> str:
        """The challenge in the answer to a request without credentials."""
        return "Bearer" if self._token else 'Basic realm="metrics"'

    def admits(self, authorization: str) -> bool:
        """Return whether a request's header ``Authorization`` has them."""
        expected = []
        if self._password is not None:
            pair = f"{self._username}:{self._password.reveal()}"
            expected.append("Basic " + base64.b64encode(pair.encode()).decode())
        if self._token is not None:
            expected.append("Bearer " + self._token.reveal())
        given = authorization.encode("utf-8", "replace")
        # In constant time, so that its duration says nothing of how much was right.
        return not expected or any(hmac.compare_digest(given, header.encode()) for header in expected)


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
