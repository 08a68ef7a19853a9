"""Opens file systems by URLs as Spark takes them, with fsspec."""

from __future__ import annotations

import re
from typing import Any

from fsspec.core import url_to_fs

from spark_events.api import ConfigError

# What Hadoop calls by other names than fsspec.
_HADOOP_SCHEMES = re.compile(r"^s3[an]://")


def open_file_system(url: str, what: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it.

    Listings are asked for anew each time: another process may have written.

    Args:
        url: a local path, or a URL that fsspec knows, or ``s3a://``.
        what: what a person calls it, for the error.

    Raises:
        ConfigError: the file system is not known, or not installed.
    """
    known = _HADOOP_SCHEMES.sub("s3://", url)
    try:
        found, path = url_to_fs(known, use_listings_cache=False, skip_instance_cache=True)
    except (ImportError, ValueError, TypeError) as error:
        hint = "; pip install 'spark-events[s3]'" if known.startswith("s3://") else ""
        raise ConfigError(f"{what}: its file system cannot be used: {error}{hint}") from error
    return found, str(path)
