"""The folder in which the runs of applications keep what their next runs are compared with."""

from __future__ import annotations

import hashlib
import re
import secrets
from pathlib import Path
from typing import Any

from spark_events.api import ConfigError, probe_folder
from spark_events.api.toolkit.formatting import path_without_secrets, text_without_url_secrets
from spark_events.diagnosis.earlier_runs.past_runs import PastRun
from spark_events.runtime.log_once import logger

_KEPT = 3
"""How many times as many runs are kept as are compared: a replay of an older run has its own past then."""
_LARGEST_BYTES = 4 << 20


class RunFolder:
    """The runs of one application, a file each: nothing is ever written by two of them.

    Args:
        url: the folder of all applications: a path, or a URL that fsspec knows.
        app_name: the application's name.
        most: how many runs to return at most.

    Raises:
        ConfigError: fsspec is not installed, or knows no such file system.
    """

    def __init__(self, url: str, app_name: str, most: int) -> None:
        self._file_system, path = _opened(url)
        digest = hashlib.blake2b(app_name.encode(errors="replace"), digest_size=4).hexdigest()
        readable = re.sub(r"[^A-Za-z0-9_-]", "_", app_name)[:100]
        self._folder = f"{path.rstrip('/')}/{readable}-{digest}"
        self._most = most

    def read(self, before_ms: int, app_id: str) -> list[PastRun]:
        """Return the last runs that began before a time, in ms since the epoch, the oldest first.

        A file that cannot be read is logged and left out.

        Raises:
            OSError: the folder cannot be read.
        """
        runs: list[PastRun] = []
        for name in reversed(self._names()):
            if len(runs) == self._most:
                break
            run = self._read(name) if _start_ms(name) < before_ms else None
            if run is not None and run.app_id != app_id:
                runs.append(run)
        return runs[::-1]

    def write(self, run: PastRun) -> None:
        """Keep a run, and remove those that are so old that no run is compared with them any more.

        Raises:
            OSError: it cannot be written.
        """
        self._file_system.makedirs(self._folder, exist_ok=True)
        app_id = re.sub(r"[^A-Za-z0-9_-]", "_", run.app_id)[:100]
        self._file_system.pipe_file(f"{self._folder}/{run.start_ms:013d}-{app_id}.json", run.to_json())
        for name in self._names()[: -_KEPT * self._most]:
            self._file_system.rm_file(f"{self._folder}/{name}")

    def _names(self) -> list[str]:
        try:
            listed = self._file_system.ls(self._folder, detail=False)
        except FileNotFoundError:
            return []
        names = (str(path).rpartition("/")[2] for path in listed)
        return sorted(name for name in names if re.fullmatch(r"\d{13}-[\w-]+\.json", name, re.ASCII))

    def _read(self, name: str) -> PastRun | None:
        path = f"{self._folder}/{name}"
        try:
            # Bounded, for whoever may write there should not fill the driver's memory.
            return PastRun.from_json(self._file_system.cat_file(path, end=_LARGEST_BYTES))
        except (OSError, ValueError) as error:
            reason = text_without_url_secrets(str(error))
            logger.warning("%s is left out of the past runs: %s", path_without_secrets(path), reason)
            return None


def probe_run_folder(url: str) -> None:
    """Check that runs can be kept in a folder, by writing and removing a file in it.

    Args:
        url: as of ``RunFolder``.

    Raises:
        ConfigError: as of ``RunFolder``, or a local folder cannot be written.
        OSError: another one cannot be written.
    """
    file_system, path = _opened(url)
    if "file" in file_system.protocol:  # is not made, for the user of the job may be another one
        probe_folder(Path(path))
        return
    probe = f"{path.rstrip('/')}/.spark-events-probe-{secrets.token_hex(8)}"
    file_system.makedirs(path, exist_ok=True)
    file_system.pipe_file(probe, b"probe")
    file_system.rm_file(probe)


def _opened(url: str) -> tuple[Any, str]:
    try:
        from spark_events.spark.file_systems import open_file_system
    except ImportError as error:
        raise ConfigError(
            f"{path_without_secrets(url)}: reading it needs fsspec: pip install fsspec"
        ) from error
    return open_file_system(url, url)


def _start_ms(name: str) -> int:
    return int(name.partition("-")[0])
