"""The option type of a local folder."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from spark_events.api import OptionType


def _parse(text: str) -> Path:
    if "://" not in text and not text.startswith("file:"):
        return Path(text)
    url = urlsplit(text)
    if url.scheme != "file" or url.netloc not in ("", "localhost") or not url.path:
        raise ValueError(f"{url.scheme}: is no local file system")
    return Path(unquote(url.path))


LOCAL_PATH = OptionType("local path", "a local folder such as file:///var/log/spark-events", _parse)
