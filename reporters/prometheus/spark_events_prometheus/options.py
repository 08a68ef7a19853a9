"""The options of the Prometheus reporters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_events.api import Option
from spark_events.api import option_types as types

PORT = Option(
    "port",
    types.PORTS,
    range(9249, 9261),
    "port, or a range from which the first free one is used; 9249-9260 by default",
)
BIND_ADDRESS = Option("bind.address", types.ADDRESS, "127.0.0.1", "address to listen on; 0.0.0.0 for all")
TLS_CERTIFICATE = Option.optional(
    "tls.certificate", types.LOCAL_PATH, "PEM file of the server's certificate; TLS is off without it"
)
TLS_KEY = Option.optional("tls.key", types.LOCAL_PATH, "PEM file of that certificate's key")
TLS_CLIENT_AUTHORITIES = Option.optional(
    "tls.client.authorities",
    types.LOCAL_PATH,
    "PEM file of the authorities whose clients may scrape, for mTLS",
)
_TLS = (TLS_CERTIFICATE, TLS_KEY, TLS_CLIENT_AUTHORITIES)
AUTH_USERNAME = Option.optional("auth.username", types.STRING, "the user of basic authentication")
AUTH_PASSWORD = Option.optional("auth.password", types.SECRET, "the user's password")
AUTH_TOKEN = Option.optional("auth.token", types.SECRET, "the token of bearer authentication")
_AUTH = (AUTH_USERNAME, AUTH_PASSWORD, AUTH_TOKEN)
LINGER = Option(
    "linger.timeout",
    types.DURATION,
    60_000,
    "how long, at most, another process serves the last values to those who scraped; 0 for not at all",
)
LINGER_UNSCRAPED = Option(
    "linger.include-unscraped",
    types.BOOL,
    False,
    "whether that process also waits for a scrape if there was none, as in a run shorter than the interval",
)
SCRAPE_OPTIONS: tuple[Option[Any], ...] = (PORT, BIND_ADDRESS, *_TLS, *_AUTH, LINGER, LINGER_UNSCRAPED)

HOST_URL = Option.must("hostUrl", types.STRING, "URL of the Pushgateway")
JOB_NAME = Option.optional("jobName", types.STRING, "label job; the application's name by default")
RANDOM_JOB_NAME_SUFFIX = Option(
    "randomJobNameSuffix",
    types.BOOL,
    False,
    "whether each run has a group of its own; otherwise a run replaces the one before it",
)
DELETE_ON_SHUTDOWN = Option(
    "deleteOnShutdown", types.BOOL, False, "whether the metrics are deleted when the application ends"
)
GROUPING_KEY: Option[Mapping[str, str]] = Option(
    "groupingKey", types.MAP_OF_PAIRS, {}, "more labels of the group, key=value;key=value"
)
USERNAME = Option.optional("username", types.STRING, "the user of basic authentication")
PASSWORD = Option.optional("password", types.SECRET, "the user's password")
TIMEOUT = Option("timeout", types.at_least(1, types.DURATION), 3_000, "how long one request may take")
_GROUP = (JOB_NAME, RANDOM_JOB_NAME_SUFFIX, DELETE_ON_SHUTDOWN, GROUPING_KEY)
PUSH_OPTIONS: tuple[Option[Any], ...] = (HOST_URL, *_GROUP, USERNAME, PASSWORD, TIMEOUT)
