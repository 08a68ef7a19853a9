"""The authentication of a server's clients, by a password or a token."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping

from spark_events.api.option_types import Secret


def normal_header(authorization: str) -> str:
    """Return a header ``Authorization`` with its scheme as we write it, because its case does not matter."""
    scheme, _, credentials = authorization.strip().partition(" ")
    return f"{scheme.capitalize()} {credentials.strip()}"


class ServerAuthentication:
    """The credentials of which a request needs one; if there are none, it needs none.

    Args:
        realm: what the server says that it protects.
        token: of bearer authentication; None for none.
        passwords: of basic authentication, by user.
    """

    def __init__(self, realm: str, token: Secret | None, passwords: Mapping[str, Secret]) -> None:
        self._realm = realm
        self._token = token
        self._passwords = passwords

    @property
    def needed(self) -> bool:
        """Whether a request needs credentials."""
        return bool(self._passwords) or self._token is not None

    @property
    def challenge(self) -> str:
        """The challenge in the answer to a request without credentials."""
        return f'Basic realm="{self._realm}"' if self._passwords else "Bearer"

    def admits(self, authorization: str) -> bool:
        """Return whether a request's header ``Authorization`` has them."""
        expected = self._headers()
        given = normal_header(authorization).encode("utf-8", "replace")
        # In constant time, so that its duration says nothing of how much was right.
        return not expected or any(hmac.compare_digest(given, header) for header in expected)

    def digests(self, salt: bytes) -> list[str]:
        """Return the HMAC-SHA256, in hex, of each header that is admitted, for another process."""
        return [hmac.new(salt, header, "sha256").hexdigest() for header in self._headers()]

    def _headers(self) -> list[bytes]:
        """Return the headers ``Authorization`` that have the credentials."""
        headers = []
        for user, password in self._passwords.items():
            pair = f"{user}:{password.reveal()}"
            headers.append("Basic " + base64.b64encode(pair.encode()).decode())
        if self._token is not None:
            headers.append("Bearer " + self._token.reveal())
        return [header.encode() for header in headers]
