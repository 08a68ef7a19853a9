"""Opens file systems by URLs as Spark takes them, with fsspec."""

from __future__ import annotations

import getpass
import os
import re
from functools import partial
from typing import Any

from fsspec.config import conf
from fsspec.core import url_to_fs

from spark_events.api import ConfigError
from spark_events.api.toolkit.formatting import path_without_secrets, text_without_secrets_of

# What Hadoop calls by other names than fsspec.
_S3 = re.compile(r"^s3[an]://")
_HDFS = re.compile(r"^hdfs://[^/]*")
WEBHDFS = "SPARK_EVENTS_WEBHDFS"
"""The environment variable with a name node's web address, ``host:9870``, for ``hdfs://``."""
TIMEOUT_S = 60
"""How long WebHDFS, for which fsspec has no bound, may say nothing."""
_USER_OPTIONS = {"user", "kerberos", "token"}
_HINTS = {
    "s3://": "; pip install 'spark-events[s3]'",
    "hdfs://": f"; set {WEBHDFS}=HOST:PORT, the web address of the name node, or install libhdfs",
}


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
    fsspec_url = _S3.sub("s3://", url)
    if address := os.environ.get(WEBHDFS):
        fsspec_url = _HDFS.sub(f"webhdfs://{address}", fsspec_url)
    try:
        file_system, path = url_to_fs(
            fsspec_url, use_listings_cache=False, skip_instance_cache=True, **_user(fsspec_url)
        )
    except (ImportError, ValueError, TypeError, OSError) as error:
        hint = next((hint for scheme, hint in _HINTS.items() if fsspec_url.startswith(scheme)), "")
        reason = str(error).partition("\n")[0]  # libhdfs lists every folder in which it is missing
        reason = text_without_secrets_of(url, reason)
        shown = path_without_secrets(title)
        raise ConfigError(f"{shown}: its file system cannot be used: {reason}{hint}") from error
    if fsspec_url.startswith("webhdfs://"):
        file_system.session.request = partial(file_system.session.request, timeout=TIMEOUT_S)
    return file_system, str(path)


def _user(url: str) -> dict[str, str]:
    """Return the user's name, as Hadoop's clients send it: to WebHDFS, requests without it are anonymous."""
    if not url.startswith("webhdfs://") or "@" in url or _USER_OPTIONS & set(conf.get("webhdfs", {})):
        return {}
    try:
        return {"user": os.environ.get("HADOOP_USER_NAME") or getpass.getuser()}
    except (KeyError, OSError):  # a container's user may have no name
        return {}
