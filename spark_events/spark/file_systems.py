"""Opens file systems by URLs as Spark takes them, with fsspec."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from fsspec.config import conf
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from spark_events.api import ConfigError
from spark_events.api.toolkit.formatting import path_without_secrets, text_without_secrets_of
from spark_events.api.toolkit.local_disk import decoded

# What Hadoop calls by other names than fsspec.
_S3 = re.compile(r"^s3[an]://")
_HDFS = re.compile(r"^hdfs://[^/]*")
WEBHDFS = "SPARK_EVENTS_WEBHDFS"
"""The environment variable with a name node's web address, ``host:9870``, for ``hdfs://``."""
TIMEOUT_S = 60
"""How long WebHDFS, for which fsspec has no bound, may say nothing."""
_USER_OPTIONS = {"user", "kerberos", "token"}
_KERBEROS = "requests_kerberos"
_HINTS = {
    "s3://": "; pip install 'spark-events[s3]'",
    "hdfs://": f"; set {WEBHDFS}=HOST:PORT, the web address of the name node, or install libhdfs",
}
_UNAUTHORIZED = 401
_NO_KERBEROS = (
    "the name node asks for Kerberos (HTTP status 401): set FSSPEC_WEBHDFS_KERBEROS=true, "
    "pip install requests-kerberos, and get a ticket with kinit"
)
_NO_TICKET = (
    "there is no valid Kerberos ticket for the name node: klist shows whether there is one and "
    "when it expires; get one with kinit or, for longer than a ticket lives, "
    "set KRB5_CLIENT_KTNAME to your keytab"
)


class NotSignedInError(OSError):
    """A server does not know who asks. It says nothing about whether the user may do what was asked."""


def open_file_system(url: str, title: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it.

    Listings are not cached: another process may have written in the meantime.

    Args:
        url: a local path, or a URL that fsspec knows, or ``s3a://``; ``hdfs://`` goes over WebHDFS where the
            environment says its address.
        title: its name in error messages.

    Raises:
        ConfigError: the file system is unknown, or its package is not installed.
    """
    fsspec_url = _S3.sub("s3://", decoded(url))
    if address := os.environ.get(WEBHDFS):
        fsspec_url = _HDFS.sub(f"webhdfs://{address}", fsspec_url)
    if "://" not in fsspec_url and not fsspec_url.startswith("file:"):
        local = LocalFileSystem(use_listings_cache=False, skip_instance_cache=True)
        return local, str(
            local._strip_protocol(fsspec_url)
        )  # "::" is not fsspec's sign between two URLs here
    try:
        file_system, path = url_to_fs(
            fsspec_url, use_listings_cache=False, skip_instance_cache=True, **_user(fsspec_url)
        )
    except (ImportError, ValueError, TypeError, OSError) as error:
        if isinstance(error, ImportError) and error.name == _KERBEROS:
            hint = "; for Kerberos, pip install requests-kerberos"
        else:
            hint = next((hint for scheme, hint in _HINTS.items() if fsspec_url.startswith(scheme)), "")
        reason = str(error).partition("\n")[0]  # libhdfs lists every folder in which it is missing
        reason = text_without_secrets_of(url, reason)
        shown = path_without_secrets(title)
        raise ConfigError(f"{shown}: its file system cannot be used: {reason}{hint}") from error
    if fsspec_url.startswith("webhdfs://"):
        ask = partial(file_system.session.request, timeout=TIMEOUT_S)
        file_system.session.request = partial(_answer_to_known_user, ask, bool(file_system.kerb))
    return file_system, str(path)


def _answer_to_known_user(ask: Callable[..., Any], with_ticket: bool, *request: Any, **options: Any) -> Any:
    """Return what a name node answers, unless it refuses to answer someone whom it does not know.

    Args:
        ask: sends a request.
        with_ticket: whether it sends Kerberos tickets along.
        *request: what to ask.
        **options: how to ask it.

    Raises:
        NotSignedInError: it refuses.
    """
    try:
        answer = ask(*request, **options)
    except OSError as error:
        # A ticket that expires between two steps; the library is there only if tickets are sent along.
        if type(error).__name__ == "MutualAuthenticationError":
            raise NotSignedInError(_NO_TICKET) from error
        raise
    if answer.status_code == _UNAUTHORIZED:
        answer.close()
        raise NotSignedInError(_NO_TICKET if with_ticket else _NO_KERBEROS)
    return answer


def _user(url: str) -> dict[str, str]:
    """Return the user's name, as Hadoop's clients send it: to WebHDFS, requests without it are anonymous."""
    if not url.startswith("webhdfs://") or "@" in url or _USER_OPTIONS & set(conf.get("webhdfs", {})):
        return {}
    try:
        return {"user": os.environ.get("HADOOP_USER_NAME") or getpass.getuser()}
    except (KeyError, OSError):  # a container's user may have no name
        return {}
